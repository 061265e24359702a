// A file of torch.save and, if the input does not begin like a zip file, a pickle alone.
#include "checkpoint/pickle.hpp"
#include "checkpoint/torch_file.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  try {
    if (size > 0 && data[0] != 'P') {
      const Pickle pickle = ReadPickle(std::as_bytes(std::span(data, size)));
      fuzz::Require(pickle.root < pickle.values.size());
    } else {
      const std::string path = fuzz::TheScratch().Write("pytorch_model.bin", {data, size});
      for (const TensorEntry& entry : ReadTorchFile(path).entries) {
        fuzz::Require(entry.begin <= entry.end && entry.end <= size);
        fuzz::Require(CheckedBytes(entry) == entry.end - entry.begin);
      }
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
