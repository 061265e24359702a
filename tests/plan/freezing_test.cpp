#include <catch2/catch.hpp>

#include "plan/stage_parts.hpp"
#include "tests/plan/small_config.hpp"

namespace troupe {
namespace {

TEST_CASE("without anything frozen every stage runs backward and every edge answers", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].layout.pp = 2;
  CHECK(RunsBackward(config, "vision", 0));
  CHECK(EdgeCarriesGradient(config, config.edges[0]));
  CHECK(EdgeCarriesGradient(config, config.edges[1]));
}

TEST_CASE("a frozen encoder whose projector trains runs backward on its last stage only",
          "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].layout.pp = 2;
  config.modules[0].frozen = true;
  CHECK_FALSE(RunsBackward(config, "vision", 0));
  CHECK(StageTrains(config, "vision", 1));
  CHECK(EdgeCarriesGradient(config, config.edges[0]));
}

TEST_CASE("a projector at the far end needs no gradient over the boundary", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[1].frozen = true;
  CHECK_FALSE(RunsBackward(config, "audio", 0));
  CHECK_FALSE(EdgeCarriesGradient(config, config.edges[1]));
  CHECK(EdgeCarriesGradient(config, config.edges[0]));
}

TEST_CASE("one edge's projector makes no gradient flow over another edge", "[modules]") {
  Config config = SmallModulesConfig();
  ModuleConfig second = config.modules[2];
  second.name = "critic";
  config.modules.push_back(second);
  config.edges.push_back(
      {.from = "vision", .to = "critic", .through = ProjectorConfig{.hidden = 4, .frozen = true}});
  config.modules[0].frozen = true;
  CHECK(EdgeCarriesGradient(config, config.edges[0]));
  CHECK_FALSE(EdgeCarriesGradient(config, config.edges[2]));
}

TEST_CASE("a frozen language model still passes the gradient on to what trains above it",
          "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[2].frozen = true;
  config.modules[2].layout.pp = 2;
  CHECK_FALSE(StageTrains(config, "language", 1));
  CHECK(RunsBackward(config, "language", 1));
  CHECK(RunsBackward(config, "language", 0));
}

TEST_CASE("when nothing trains nothing runs backward", "[modules]") {
  Config config = SmallModulesConfig();
  for (ModuleConfig& module : config.modules) module.frozen = true;
  for (EdgeConfig& edge : config.edges) edge.through->frozen = true;
  for (const char* module : {"vision", "audio", "language"}) {
    CHECK_FALSE(RunsBackward(config, module, 0));
  }
}

TEST_CASE("an inline encoder trains inside its host", "[modules]") {
  Config config = SmallModulesConfig();
  config.modules[0].inline_in = "language";
  config.modules[2].frozen = true;
  config.modules[2].layout.pp = 2;
  config.edges[1].through->frozen = true;
  config.modules[1].frozen = true;
  CHECK(StageTrains(config, "language", 0));
  CHECK(EdgeCarriesGradient(config, config.edges[0]));
  CHECK_FALSE(EdgeCarriesGradient(config, config.edges[1]));
  CHECK(RunsBackward(config, "language", 1));
}

TEST_CASE("synthetic stages train unless frozen", "[modules]") {
  Config config;
  ModuleConfig module;
  module.name = "work";
  config.modules = {module};
  CHECK(RunsBackward(config, "work", 0));
  config.modules[0].frozen = true;
  CHECK_FALSE(RunsBackward(config, "work", 0));
}

}  // namespace
}  // namespace troupe
