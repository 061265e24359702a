#include "plan/layer_split.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
#include "kinds/vit.hpp"

namespace troupe {
namespace {

using Sizes = std::vector<std::int64_t>;

ModuleConfig Llama(std::int64_t layers, int pp, std::int64_t vocab) {
  ModuleConfig module;
  module.name = "language";
  module.layout.pp = pp;
  LlamaConfig llama;
  llama.vocab = vocab;
  llama.hidden = 64;
  llama.layers = layers;
  llama.heads = 4;
  llama.kv_heads = 4;
  llama.mlp_hidden = 192;
  llama.context = 96;
  module.model = llama;
  return module;
}

/// The least possible cost of the most expensive stage, by trying every cut.
double BestMaximum(std::int64_t layers, int stages, double first, double last, bool is_first) {
  const double extra = (is_first ? first : 0.0) + (stages == 1 ? last : 0.0);
  if (stages == 1) return static_cast<double>(layers) + extra;
  double best = INFINITY;
  for (std::int64_t own = 1; own <= layers - stages + 1; ++own) {
    const double rest = BestMaximum(layers - own, stages - 1, first, last, false);
    best = std::min(best, std::max(static_cast<double>(own) + extra, rest));
  }
  return best;
}

TEST_CASE("without extras the layers are even and later stages take what is left over",
          "[modules]") {
  CHECK(BalanceLayers(8, 4, 0.0, 0.0) == Sizes{2, 2, 2, 2});
  CHECK(BalanceLayers(10, 4, 0.0, 0.0) == Sizes{2, 2, 3, 3});
  CHECK(BalanceLayers(7, 1, 5.0, 5.0) == Sizes{7});
  CHECK(BalanceLayers(0, 1, 0.0, 0.0) == Sizes{0});
}

TEST_CASE("a heavy head takes layers from the last stage, a heavy embedding from the first",
          "[modules]") {
  CHECK(BalanceLayers(8, 2, 0.0, 2.0) == Sizes{5, 3});
  CHECK(BalanceLayers(8, 2, 2.0, 0.0) == Sizes{3, 5});
  CHECK(BalanceLayers(4, 2, 0.0, 50.0) == Sizes{3, 1});
}

TEST_CASE("no cut has a cheaper largest stage", "[modules]") {
  for (int stages = 1; stages <= 5; ++stages) {
    for (std::int64_t layers = stages; layers <= 9; ++layers) {
      for (const double first : {0.0, 0.4, 1.7}) {
        for (const double last : {0.0, 0.3, 2.6}) {
          const Sizes sizes = BalanceLayers(layers, stages, first, last);
          REQUIRE(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == layers);
          REQUIRE(std::ranges::min(sizes) >= 1);
          std::vector<double> costs(sizes.begin(), sizes.end());
          costs.front() += first;
          costs.back() += last;
          REQUIRE(std::ranges::max(costs) ==
                  Approx(BestMaximum(layers, stages, first, last, true)));
        }
      }
    }
  }
}

TEST_CASE("a large vocabulary counts as the layers its head costs", "[modules]") {
  CHECK(SplitLayers(Llama(8, 2, 260)) == std::vector<Interval>{{0, 4}, {4, 8}});
  CHECK(SplitLayers(Llama(8, 2, 3200)) == std::vector<Interval>{{0, 6}, {6, 8}});
}

TEST_CASE("stated layers are taken as stated", "[modules]") {
  ModuleConfig module = Llama(4, 2, 260);
  module.layers_per_stage = {1, 3};
  CHECK(SplitLayers(module) == std::vector<Interval>{{0, 1}, {1, 4}});
}

TEST_CASE("stated layers that do not fit are refused with both sums", "[modules]") {
  ModuleConfig module = Llama(4, 2, 260);
  module.layers_per_stage = GENERATE(Sizes{1, 2}, Sizes{4}, Sizes{4, 0}, Sizes{1, 1, 2});
  CHECK_THROWS_WITH(SplitLayers(module),
                    Catch::StartsWith("language.layers_per_stage: expected 2 numbers of at least 1 "
                                      "with sum 4, got "));
}

TEST_CASE("more stages than layers are refused", "[modules]") {
  CHECK_THROWS_WITH(SplitLayers(Llama(2, 3, 260)),
                    "layers: expected at least one for each of 3 stages, got 2");
}

TEST_CASE("a vision transformer splits only the layers it builds", "[modules]") {
  ModuleConfig module;
  module.name = "vision";
  module.layout.pp = 2;
  VitConfig vit;
  vit.image_size = 8;
  vit.patch_size = 2;
  vit.hidden = 32;
  vit.layers = 5;
  vit.heads = 4;
  vit.mlp_hidden = 64;
  vit.feature_layer = -2;
  module.model = vit;
  CHECK(SplitLayers(module) == std::vector<Interval>{{0, 2}, {2, 4}});
}

}  // namespace
}  // namespace troupe
