#include <map>

#include <catch2/catch.hpp>

#include "tests/torch/programs_fixture.hpp"

namespace troupe {
namespace {

TEST_CASE("what is frozen has no gradients, and what trains keeps its own", "[torch]") {
  Config config = SmallConfig();
  const Outcome all = Run(config);
  const bool vision = GENERATE(false, true);
  const bool projector = GENERATE(false, true);
  const bool language = GENERATE(false, true);
  if (vision && projector && language) return;
  ModuleOf(config, "vision").frozen = vision;
  ModuleOf(config, "language").frozen = language;
  config.edges[0].through->frozen = projector;
  config.edges[0].through->on = GENERATE(ProjectorEnd::kFrom, ProjectorEnd::kTo);
  SetLayout(config, "vision", {.tp = 2, .pp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  Outcome expected = all;
  std::erase_if(expected.gradients, [&](const auto& entry) {
    if (entry.first.starts_with("vision_to_language")) return projector;
    return entry.first.starts_with("vision.") ? vision : language;
  });
  const Outcome outcome = Run(config);
  CHECK(outcome.loss.loss == Approx(all.loss.loss).epsilon(1e-12));
  CHECK(Difference(expected.gradients, outcome.gradients) < kExact);
  CHECK(outcome.squares == Approx(SquaredNorm(expected)).epsilon(1e-10));
}

TEST_CASE("a boundary into frozen territory carries no gradient", "[torch]") {
  Config config = SmallConfig();
  ModuleOf(config, "vision").frozen = true;
  config.edges[0].through->on = ProjectorEnd::kTo;
  Job job(config);
  job.Train({MakeInputs(config, {1, 1}, 5)}, kScale);
  CHECK(job.num_undefined_input_gradients() == 1);
}

}  // namespace
}  // namespace troupe
