// What `troupe trace` prints.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/cli/process.hpp"
#include "tests/trace/export/lint/lint.hpp"

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

inline std::string ContentOf(const std::string& file) {
  std::ifstream opened(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(opened), {}};
}

/// What an importer would trip over in `file`.
inline std::string Linted(const std::string& file) { return Format(Lint(ContentOf(file))); }

}  // namespace troupe
