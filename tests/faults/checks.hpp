// What a job must look like when one of its processes is lost.
#pragma once

#include <cmath>
#include <string>

#include <catch2/catch.hpp>

#include "tests/faults/bed.hpp"

namespace troupe::testing {

/// The code of docs/cli.md for a process or machine that was lost.
inline constexpr int kExitLost = 3;

/// Where there are no network namespaces, a test of them says so and passes.
inline bool NoBed() {
  if (Bed::Available().empty()) return false;
  WARN(Bed::Available());
  return true;
}

/// Every node but `victim` says within `seconds` of the fault what has become of it, ends with exit
/// code 3 and says so once more as its last word.
inline void CheckNamed(const Bed& bed, int victim, const std::string& cause, double seconds) {
  for (int node = 0; node < bed.nodes(); ++node) {
    if (node == victim) continue;
    const auto line = bed.WaitForLine(node, "lost " + cause, kPatience);
    INFO("node " << node << "\n" << bed.Transcript());
    REQUIRE(line);
    CHECK(line->error);
    CHECK(bed.SinceFault(line->at) < seconds);
    const Ending ending = bed[node].WaitForEnd(kPatience);
    REQUIRE(ending.ended);
    CHECK(ending.exit_code == kExitLost);
    CHECK_THAT(ending.last_line, Catch::StartsWith("troupe: lost " + cause));
  }
}

}  // namespace troupe::testing
