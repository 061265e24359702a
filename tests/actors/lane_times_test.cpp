// What a device with two lanes says of how long it was busy.
#include <catch2/catch.hpp>

#include "actors/device_actor.hpp"

namespace troupe {

TEST_CASE("a device whose lanes run concurrently is busy once", "[device]") {
  LaneTimes times;
  // Reported in the order in which they end: the sum ran during both backwards, and during nothing
  // from 35 to 40.
  CHECK(times.Count(Lane::kCompute, 0, 10) == 10);
  times.Emptied(Lane::kCollectives);
  CHECK(times.Count(Lane::kCompute, 10, 22) == 12);
  CHECK(times.Count(Lane::kCompute, 22, 35) == 13);
  CHECK(times.Count(Lane::kCollectives, 15, 40) == 5);
  times.Emptied(Lane::kCollectives);
  // What ended later began before the sum was reported.
  CHECK(times.Count(Lane::kCompute, 38, 47) == 7);
}

TEST_CASE("a piece that ran in the time of another adds nothing, and no less", "[device]") {
  LaneTimes times;
  CHECK(times.Count(Lane::kCollectives, 10, 20) == 10);
  CHECK(times.Count(Lane::kCompute, 12, 19) == 0);
  times.Emptied(Lane::kCompute);
  CHECK(times.Count(Lane::kCompute, 30, 31) == 1);
}

}  // namespace troupe
