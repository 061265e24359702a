#include <catch2/catch.hpp>

#include "tests/torch/kept.hpp"

namespace troupe {
namespace {

using enum LayerPart;

/// What of a layer is computed again, with experts or without.
struct Case {
  Recompute recompute;
  bool experts = false;
};

Config With(const Case& c, Layout layout) {
  Config config = LongLanguage(layout, Precision::kFloat32);
  ModuleConfig& module = ModuleOf(config, "language");
  module.recompute = c.recompute;
  auto& llama = module.As<LlamaConfig>();
  llama.kv_heads = 4;
  if (c.experts) {
    llama.experts = {.count = 8, .per_token = 2, .hidden = 96, .shared_hidden = 64};
    module.moe.balance_coefficient = 0.0;
  }
  return config;
}

}  // namespace

TEST_CASE("what is computed again is not kept, and check counts what is", "[torch]") {
  const bool experts = GENERATE(false, true);
  const Layout layout = GENERATE(Layout{}, Layout{.tp = 2}, Layout{.tp = 4, .ep = 4});
  if (layout.ep > 1 && !experts) return;
  double before = 0.0;
  for (const Recompute& recompute :
       {Recompute{}, Recompute{kAttention}, Recompute{kMlpUp}, Recompute{kAttention, kMlpUp},
        Recompute{kMlp}, Recompute{kAttention, kMlp}, Recompute{kLayer}}) {
    const Config config = With({recompute, experts}, layout);
    const double kept = KeptByLayer(config);
    const double estimated = EstimatedOfLayer(config);
    INFO(ToString(layout) << (experts ? ", experts" : "") << ": " << kept << " kept, " << estimated
                          << " estimated");
    if (before == 0.0) before = kept;
    CHECK(kept <= before);
    CHECK(kept <= 1.1 * estimated + 12288.0 * config.cluster.ranks);  // and nodes of the graph
    CHECK(kept >= 0.9 * estimated);
  }
}

}  // namespace troupe
