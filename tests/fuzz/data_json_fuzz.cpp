// The rows of a data set, as a list and as lines, for a model with two encoders.
#include "data/llava.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::vector<InputConfig> encoders = {{"image", "<image>"}, {"audio", "<image2>"}};
  for (const char* name : {"rows.json", "rows.jsonl"}) {
    const LlavaSet set = ReadLlava(fuzz::TheScratch().Write(name, {data, size}), encoders);
    for (const LlavaRow& row : set.rows) {
      set.NameOf(row);
      for (const Turn& turn : row.turns) SplitAtPlaceholders(turn.text, encoders);
    }
    for (const DataFault& fault : set.faults)
      fuzz::Require(fault.reason.find('\n') == std::string::npos);
  }
  return 0;
}
