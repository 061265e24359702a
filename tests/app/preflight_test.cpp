#include "app/preflight.hpp"

#include <iostream>
#include <sstream>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"

namespace troupe {
namespace {

/// What WarnOfCores prints.
std::string WarningFor(const Config& config, int ranks) {
  std::ostringstream printed;
  std::streambuf* const before = std::cerr.rdbuf(printed.rdbuf());
  WarnOfCores(config, ranks);
  std::cerr.rdbuf(before);
  return printed.str();
}

}  // namespace

TEST_CASE("ranks that outnumber cores are warned of, where they compute on them", "[cli]") {
  Config config = LoadConfig("configs/shapes.toml").config;
  CHECK_THAT(WarningFor(config, 100'000),
             Catch::StartsWith("troupe: warning: 100000 ranks on ") &&
                 Catch::EndsWith(", so steps and bubbles are longer than the layout requires\n"));
  CHECK(WarningFor(config, 1).empty());
  config.cluster.backend = Backend::kCuda;
  CHECK(WarningFor(config, 100'000).empty());
  // Synthetic modules sleep for their stated times.
  CHECK(WarningFor(LoadConfig("configs/synthetic_8stages.toml").config, 100'000).empty());
}

}  // namespace troupe
