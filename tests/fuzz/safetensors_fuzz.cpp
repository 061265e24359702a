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
    for (const TensorEntry& entry : reader.entries()) {
      std::vector<std::byte> bytes(entry.end - entry.begin);
      const std::vector<std::int64_t> origin(entry.shape.size(), 0);
      reader.ReadPart(entry, {origin, entry.shape, origin, entry.shape, bytes.data()});
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
