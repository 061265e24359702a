#include "configs/config.hpp"

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
#include "kinds/synthetic.hpp"
#include "kinds/vit.hpp"

namespace troupe {

/// a -> b -> c, with a on b's ranks in another order and c elsewhere.
static Config ThreeModules() {
  Config config;
  config.modules.resize(3);
  config.modules[0] = {.name = "a", .ranks = {1, 0}, .layout = {.dp = 2}};
  config.modules[1] = {.name = "b", .ranks = {0, 1}, .layout = {.tp = 2}};
  config.modules[2] = {.name = "c", .ranks = {2, 3, 4}, .layout = {.dp = 3}};
  config.edges = {{.from = "a", .to = "b"}, {.from = "b", .to = "c"}};
  return config;
}

TEST_CASE("the sink is the first module that feeds no other, and it defines the microbatch") {
  Config config = ThreeModules();
  config.schedule = {.micro_batch_size = 5, .microbatches = 7};
  CHECK(config.Sink().name == "c");
  CHECK(config.samples_per_microbatch() == 15);
  CHECK(config.global_batch() == 105);
  config.edges.push_back({.from = "c", .to = "a"});
  CHECK_THROWS_AS(config.Sink(), LayoutError);
}

TEST_CASE("the placement of an edge follows from the two rank sets") {
  Config config = ThreeModules();
  CHECK(PlacementOfEdge(config, config.edges[0]) == Placement::kColocated);
  CHECK(PlacementOfEdge(config, config.edges[1]) == Placement::kDisjoint);
  config.modules[0].inline_in = "b";
  CHECK(PlacementOfEdge(config, config.edges[0]) == Placement::kInline);
  CHECK_THROWS_WITH(PlacementOfEdge(config, {.from = "a", .to = "d"}),
                    "edges: unknown module \"d\"");
}

TEST_CASE("an inline module has its host's grid, and an inline host is refused") {
  Config config = ThreeModules();
  config.modules[0].inline_in = "c";
  CHECK(GridOf(config, config.modules[0]).ranks() == std::vector{2, 3, 4});
  config.modules[2].inline_in = "b";
  CHECK_THROWS_WITH(GridOf(config, config.modules[0]),
                    "modules.a.inline_in: expected a module with ranks, got \"c\"");
}

TEST_CASE("a module is of one kind at a time, and a value") {
  ModuleConfig module;
  CHECK(&module.model.kind() == &kSynthetic);
  VitConfig vit;
  vit.hidden = 3;
  module.model = vit;
  CHECK(module.model->row_width() == 3);
  CHECK_THROWS_AS(module.As<LlamaConfig>(), std::bad_cast);
  ModuleConfig copy = module;
  CHECK(copy == module);
  copy.As<VitConfig>().hidden = 4;
  CHECK(module.model->row_width() == 3);
  CHECK(copy != module);
  copy.model = LlamaConfig();
  CHECK(copy != module);
}

}  // namespace troupe
