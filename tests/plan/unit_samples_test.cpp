#include "plan/unit_samples.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

Config TwoModules(Layout vision, Layout language, bool colocated) {
  Config config;
  const auto module = [](const char* name, Layout layout, int first) {
    ModuleConfig m;
    m.name = name;
    m.layout = layout;
    m.ranks.resize(static_cast<std::size_t>(layout.num_ranks()));
    std::iota(m.ranks.begin(), m.ranks.end(), first);
    return m;
  };
  config.modules.push_back(module("vision", vision, 0));
  config.modules.push_back(module("language", language, colocated ? 0 : vision.num_ranks()));
  EdgeConfig edge;
  edge.from = "vision";
  edge.to = "language";
  config.edges.push_back(edge);
  config.schedule.micro_batch_size = 3;
  return config;
}

std::vector<std::int64_t> Numbers(const UnitSamples& unit) {
  std::vector<std::int64_t> numbers;
  for (const Interval& i : unit.samples) {
    for (auto n = i.begin; n < i.end; ++n) numbers.push_back(n);
  }
  return numbers;
}

}  // namespace

TEST_CASE("a disjoint module's unit is its part of one microbatch", "[modules]") {
  Layout dp3, dp2;
  dp3.dp = 3;
  dp2.dp = 2;
  const Config config = TwoModules(dp3, dp2, false);  // 6 samples per microbatch
  for (const std::int64_t unit : {0, 4}) {
    CHECK(SamplesOfUnit(config, config.modules[0], 1, 5, unit).first_microbatch == unit);
    CHECK(Numbers(SamplesOfUnit(config, config.modules[0], 1, 5, unit)) ==
          std::vector<std::int64_t>{2, 3});
    CHECK(Numbers(SamplesOfUnit(config, config.modules[1], 1, 5, unit)) ==
          std::vector<std::int64_t>{3, 4, 5});
  }
}

TEST_CASE("a colocated encoder's unit is a window, the last one shorter", "[modules]") {
  Layout dp2;
  dp2.dp = 2;
  Config config = TwoModules(dp2, dp2, true);
  config.schedule.window = 2;
  const ModuleConfig& vision = config.modules[0];
  CHECK(Numbers(SamplesOfUnit(config, vision, 1, 3, 0)) ==
        std::vector<std::int64_t>{3, 4, 5, 9, 10, 11});
  const UnitSamples last = SamplesOfUnit(config, vision, 1, 3, 1);
  CHECK(last.first_microbatch == 2);
  CHECK(Numbers(last) == std::vector<std::int64_t>{3, 4, 5});
  config.schedule.window = 0;  // the whole step
  CHECK(Numbers(SamplesOfUnit(config, vision, 0, 3, 0)) ==
        std::vector<std::int64_t>{0, 1, 2, 6, 7, 8, 12, 13, 14});
}

TEST_CASE("a window of a colocated encoder has at most one sample more than its share",
          "[modules]") {
  Config config = TwoModules({.tp = 2, .dp = 3}, {.pp = 3, .dp = 2}, true);
  config.schedule.micro_batch_size = 4;  // 8 samples per microbatch
  const ModuleConfig& vision = config.modules[0];
  CHECK(MostSamplesOfUnit(config, vision, 1) == 3);
  CHECK(MostSamplesOfUnit(config, vision, 4) == 11);
  config.schedule.window = 2;
  CHECK(MostSamplesOfUnit(config, vision, 4) == 6);
  CHECK(MostSamplesOfUnit(config, config.modules[1], 4) == 4);
  std::vector<std::int64_t> all;
  for (int dp = 0; dp < 3; ++dp) {
    const auto numbers = Numbers(SamplesOfUnit(config, vision, dp, 4, 1));
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  std::ranges::sort(all);
  std::vector<std::int64_t> expected(16);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

}  // namespace troupe
