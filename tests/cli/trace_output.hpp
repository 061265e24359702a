// What `troupe trace` prints.
#pragma once

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cli/process.hpp"

namespace troupe {

/// Standard output of `troupe trace ARGUMENTS`, which must succeed.
inline std::string Printed(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"trace"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Outcome outcome = RunTroupe(all);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  return outcome.out;
}

}  // namespace troupe
