// The rows of a data set, as a list and as lines, for a model with encoders of images and of sound.
#include "data/rows/llava.hpp"
#include "tests/data/read_llava.hpp"
#include "tests/fuzz/scan_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::vector<RowField> fields = {{"image", "<image>"}, {"audio", "<image2>", "sound"}};
  for (const char* name : {"rows.json", "rows.jsonl"}) {
    const std::string path = fuzz::TheScratch().Write(name, {data, size});
    fuzz::RequireScansAgree(path);
    const ReadRows set = ReadLlava(path, fields);
    for (const LlavaRow& row : set.rows) {
      for (const Turn& turn : row.turns) SplitAtPlaceholders(turn.text, fields);
    }
    for (const DataFault& fault : set.faults)
      fuzz::Require(fault.reason.find('\n') == std::string::npos);
  }
  return 0;
}
