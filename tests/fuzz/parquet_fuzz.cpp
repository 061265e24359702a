// A Parquet file of rows, with Arrow.
#include "tests/data/read_llava.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const std::vector<RowField> fields = {{"image", "<image>"}, {"audio", "<image2>", "sound"}};
  const std::string path = fuzz::TheScratch().Write("rows.parquet", {data, size});
  try {
    const ReadRows set = ReadLlava(path, fields);
    for (const DataFault& fault : set.faults) {
      fuzz::Require(FaultLine(path, fault).find('\n') == std::string::npos);
    }
  } catch (const FaultError&) {  // not a Parquet file
  }
  return 0;
}
