#include "app/launched_child.hpp"

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("another process in a lost one's place asks for a generation that the others can reach",
          "[app]") {
  LaunchedChild child;
  CHECK(child.next_generation() == 0);
  child.leads = true;
  CHECK(child.next_generation() == 1);  // the job may have met before it could say so
  child.joined = 0;
  CHECK(child.next_generation() == 1);
  child.joined = 3;
  CHECK(child.next_generation() == 4);
  child.started = 7;
  CHECK(child.next_generation() == 7);
}

}  // namespace troupe
