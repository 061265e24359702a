// A tar archive of rows, as a shard and as the bytes of one row, for a model with encoders of images and of
// sound.
#include "tests/data/read_llava.hpp"
#include "tests/fuzz/scan_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::vector<RowField> fields = {{"image", "<image>"}, {"audio", "<image2>", "sound"}};
  const std::string path = fuzz::TheScratch().Write("rows.tar", {data, size});
  fuzz::RequireScansAgree(path);
  const ReadRows set = ReadLlava(path, fields);
  for (const LlavaRow& row : set.rows) {
    for (const auto& files : row.files) {
      for (const std::string& file : files) {
        const auto bytes = *row.ItemOf(set, file).bytes;  // lies in the row
        fuzz::Require(bytes.size() <= size);
        if (!bytes.empty()) fuzz::Require(bytes.front() + bytes.back() >= 0);
      }
    }
  }
  for (const DataFault& fault : set.faults) {
    fuzz::Require(FaultLine(path, fault).find('\n') == std::string::npos);
  }
  return 0;
}
