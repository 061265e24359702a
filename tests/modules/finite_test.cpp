#include "modules/finite.hpp"

#include <limits>

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("the first value that is no number is found in any place", "[modules]") {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (std::int64_t bad = 0; bad < 40; ++bad) {
      Buffer buffer = Buffer::Zeros({10, 4}, dtype);
      CHECK_FALSE(NonFinite(buffer));
      if (dtype == DType::kFloat32) {
        buffer.as<float>()[bad] = std::numeric_limits<float>::infinity();
        CHECK(NonFinite(buffer) == "inf at row " + std::to_string(bad / 4));
      } else {
        buffer.as<double>()[bad] = -std::numeric_limits<double>::quiet_NaN();
        CHECK(NonFinite(buffer) == "nan at row " + std::to_string(bad / 4));
      }
    }
  }
}

TEST_CASE("the largest finite numbers, integers and nothing at all are finite", "[modules]") {
  Buffer large = Buffer::Zeros({64}, DType::kFloat32);
  for (int i = 0; i < 64; ++i) large.as<float>()[i] = std::numeric_limits<float>::max();
  CHECK_FALSE(NonFinite(large));
  CHECK_FALSE(NonFinite(Buffer::Zeros({3}, DType::kInt64)));
  CHECK_FALSE(NonFinite(Buffer::Zeros({0, 4}, DType::kFloat32)));
  CHECK_FALSE(NonFinite(Buffer()));
}

}  // namespace troupe
