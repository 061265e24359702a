#include "app/interrupt.hpp"

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("signals within half a second of the first are one request to end", "[cli]") {
  using std::chrono::milliseconds;
  const EndRequests::Time first{std::chrono::hours(1)};
  EndRequests requests;
  CHECK(requests.IsNew(first));
  CHECK_FALSE(requests.IsNew(first));
  CHECK_FALSE(requests.IsNew(first + milliseconds(300)));
  CHECK_FALSE(requests.IsNew(first + milliseconds(499)));
  CHECK(requests.IsNew(first + milliseconds(500)));  // not counted from the last one
  CHECK(requests.IsNew(first + milliseconds(501)));
}

}  // namespace troupe
