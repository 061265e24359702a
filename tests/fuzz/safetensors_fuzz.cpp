// A file of weights, with its header and its tensors.
#include "checkpoint/safetensors.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::string path = fuzz::TheScratch().Write("weights.safetensors", {data, size});
  try {
    const SafetensorsReader reader(path);
    for (const TensorEntry& entry : reader.entries()) {
      fuzz::Require(reader.Find(entry.name) == &entry);
      reader.Read(entry.name);
    }
    Sha256 sum;
    reader.ReadAll(sum, [](const TensorEntry&, const Buffer&) {});
  } catch (const std::runtime_error&) {
  }
  return 0;
}
