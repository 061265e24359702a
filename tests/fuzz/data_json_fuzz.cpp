// The rows of a data set, for a model with two encoders.
#include "data/llava.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::vector<InputConfig> encoders = {{"image", "<image>"}, {"audio", "<image2>"}};
  const std::string path = fuzz::TheScratch().Write("rows.json", {data, size});
  try {
    const LlavaSet set = ReadLlava(path, encoders);
    for (const LlavaRow& row : set.rows) {
      set.NameOf(row);
      for (const Turn& turn : row.turns) SplitAtPlaceholders(turn.text, encoders);
    }
  } catch (const DataError&) {
  }
  return 0;
}
