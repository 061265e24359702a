// A table of actions as CSV: reading, writing, drawing conclusions from it.
#include "schedule/action_table.hpp"
#include "schedule/lint.hpp"
#include "tests/fuzz/scratch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  ActionTable table;
  try {
    table = ParseActionTable(fuzz::AsText({data, size}));
  } catch (const std::invalid_argument&) {
    return 0;
  }
  const std::string csv = ToCsv(table);
  fuzz::Require(ToCsv(ParseActionTable(csv)) == csv);
  return 0;
}
