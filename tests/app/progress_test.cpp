#include "app/progress.hpp"

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("short durations have a decimal", "[cli]") {
  CHECK(FormatDuration(0.36) == "0.4s");
  CHECK(FormatDuration(9.94) == "9.9s");
  CHECK(FormatDuration(9.96) == "10s");
  CHECK(FormatDuration(59.4) == "59s");
  CHECK(FormatDuration(59.6) == "1m00s");
  CHECK(FormatDuration(3720) == "1h02m");
}

}  // namespace troupe
