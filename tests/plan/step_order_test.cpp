#include "plan/step_order.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "layout/at.hpp"
#include "plan/unit_samples.hpp"
#include "schedule/simulate.hpp"
#include "tests/schedule/random_times.hpp"

namespace troupe {
namespace {

Config ConfigOf(const std::string& name, std::vector<std::string> overrides = {}) {
  return LoadConfig("configs/" + name + ".toml", overrides).config;
}

/// Samples of 10 to 90 tokens, every third without an image, others with up to three.
std::vector<StepShape> DrawShapes(std::int64_t samples, std::uint64_t seed) {
  Random random(seed);
  std::vector<StepShape> shapes;
  for (std::int64_t i = 0; i < samples; ++i) {
    StepShape& shape = shapes.emplace_back();
    shape.samples = 1;
    shape.tokens = 10 + random.Below(9) * random.Below(11);
    shape.labels = random.Below(shape.tokens);
    for (const char* encoder : {"vision", "detail"}) {
      shape.lengths[encoder] = i % 3 == 0 ? 0 : 1 + random.Below(3);
    }
  }
  return shapes;
}

std::vector<SampleTimes> TimesOf(const StepOrder& order, const std::vector<StepShape>& shapes) {
  std::vector<SampleTimes> times;
  for (const StepShape& shape : shapes) times.push_back(order.TimesOf(shape));
  return times;
}

std::vector<std::int64_t> Drawn(std::size_t samples) {
  std::vector<std::int64_t> order(samples);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

bool IsPermutation(std::vector<std::int64_t> order) {
  std::ranges::sort(order);
  return order == Drawn(order.size());
}

/// The samples that a replica of a module has in the unit, with the job's own rule.
std::vector<std::int64_t> SamplesIn(const Config& config, const ModuleConfig& module, int dp,
                                    std::int64_t unit, const std::vector<std::int64_t>& order) {
  const UnitSamples held = SamplesOfUnit(config, module, dp, config.schedule.microbatches, unit);
  std::vector<std::int64_t> samples;
  for (const Interval& interval : held.samples) {
    for (auto n = interval.begin; n < interval.end; ++n) {
      const std::int64_t k = held.first_microbatch * config.samples_per_microbatch() + n;
      samples.push_back(order[static_cast<std::size_t>(k)]);
    }
  }
  return samples;
}

/// The largest work of a replica of the module in the step, over the mean.
double LargestOverMean(const StepOrder& step, const std::string& name,
                       const std::vector<SampleTimes>& times,
                       const std::vector<std::int64_t>& order) {
  const Config& config = step.plan().config();
  const ModuleConfig& module = *config.Find(name);
  std::vector<double> loads(At(module.layout.dp));
  const auto units = UnitLength(config, module).In(config.schedule.microbatches).count;
  for (int dp = 0; dp < module.layout.dp; ++dp) {
    for (std::int64_t unit = 0; unit < units; ++unit) {
      for (const std::int64_t sample : SamplesIn(config, module, dp, unit, order)) {
        for (const StagePlan& stage : step.plan().stages()) {
          if (step.plan().ModuleOf(stage.module).config->name != name) continue;
          const SampleTimes& of_sample = times[static_cast<std::size_t>(sample)];
          loads[At(dp)] += static_cast<double>(of_sample.forward_ns[At(stage.stage)] +
                                               of_sample.backward_ns[At(stage.stage)]);
        }
      }
    }
  }
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  return std::ranges::max(loads) * static_cast<double>(loads.size()) / total;
}

/// The makespan of `vision` with dp 1 in front of `language` with dp 1 and pp 2, by Simulate.
std::int64_t MakespanOf(const StepOrder& step, const std::vector<SampleTimes>& times,
                        const std::vector<std::int64_t>& order, bool padded) {
  const Config& config = step.plan().config();
  const auto duration = [&](int stage, const Pass& pass) {
    const ModuleConfig& module =
        *step.plan().ModuleOf(step.plan().stages()[At(stage)].module).config;
    const bool pads = padded && module.name == "language";
    const auto samples = SamplesIn(config, module, 0, pass.unit, order);
    std::int64_t ns = 0;
    for (const std::int64_t sample : samples) {
      const SampleTimes& of_sample = times[static_cast<std::size_t>(sample)];
      const auto& by_stage =
          pass.kind == PassKind::kForward ? of_sample.forward_ns : of_sample.backward_ns;
      const std::int64_t own = by_stage[At(stage)];
      ns = pads ? std::max(ns, own * std::ssize(samples)) : ns + own;
    }
    return ns;
  };
  return Simulate(step.plan().graph(), step.plan().schedule(), duration,
                  config.schedule.microbatches)
      .makespan_ns;
}

}  // namespace

TEST_CASE("replicas of every module get equal work", "[plan]") {
  const std::vector<std::string> jobs = {
      "shapes",       "shapes_colocated",    "shapes_colocated_uneven",
      "shapes_mixed", "shapes_two_encoders", "shapes_inline"};
  for (const std::string& job : jobs) {
    const StepOrder step(ConfigOf(job, {"schedule.microbatches=16"}));
    const Config& config = step.plan().config();
    const auto times = TimesOf(step, DrawShapes(config.global_batch(), 1));
    const auto order = step.Order(times, 16);
    INFO(job);
    REQUIRE(IsPermutation(order));
    CHECK(order == step.Order(times, 16));
    for (const ModulePlan& module : step.plan().modules()) {
      // Which replica of a colocated encoder has a sample depends on its place in the window.
      if (module.colocated_encoder || module.grid.layout().dp == 1) continue;
      const std::string& name = module.config->name;
      CAPTURE(name);
      const double balanced = LargestOverMean(step, name, times, order);
      CHECK(balanced < 1.01);
      CHECK(balanced < LargestOverMean(step, name, times, Drawn(order.size())));
    }
  }
}

TEST_CASE("replicas of a language model get equal work of a colocated encoder", "[plan]") {
  const StepOrder step(ConfigOf("shapes_colocated_uneven", {"schedule.microbatches=16"}));
  const Config& config = step.plan().config();
  const auto times = TimesOf(step, DrawShapes(config.global_batch(), 2));
  const auto order = step.Order(times, 16);
  const int dp = config.Sink().layout.dp;
  REQUIRE(dp > 1);
  std::vector<std::int64_t> images(At(dp));
  for (int replica = 0; replica < dp; ++replica) {
    for (std::int64_t unit = 0; unit < 16; ++unit) {
      for (const auto sample : SamplesIn(config, config.Sink(), replica, unit, order)) {
        images[At(replica)] += times[static_cast<std::size_t>(sample)].forward_ns[0];
      }
    }
  }
  REQUIRE(step.plan().ModuleOf(step.plan().stages()[0].module).colocated_encoder);
  const auto [least, most] = std::ranges::minmax(images);
  CHECK(least > 0);
  CHECK(static_cast<double>(most) < 1.02 * static_cast<double>(least));
}

TEST_CASE("the order of microbatches shortens the step that is simulated", "[plan]") {
  struct Case {
    int samples;       ///< of a microbatch
    bool packs;        ///< the language model does not pad
    bool text_varies;  ///< its times do, not the encoder's
    double at_most;    ///< of the makespan of the drawn order, in the mean
  };
  for (const Case& c : {Case{1, false, false, 0.9},
                        {4, false, false, 0.92},
                        {4, true, false, 0.92},
                        {1, true, true, 0.85},
                        {4, true, true, 0.85},
                        {4, false, true, 0.7}}) {
    const StepOrder step(ConfigOf(
        "shapes", {"schedule.microbatches=16", "modules.vision.layout={}", "modules.vision.ranks=4",
                   "cluster.ranks=5", "schedule.micro_batch_size=" + std::to_string(c.samples),
                   std::string("data.packing=") + (c.packs ? "true" : "false")}));
    double drawn = 0.0;
    double balanced = 0.0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Random random(seed);
      std::vector<SampleTimes> times(static_cast<std::size_t>(16 * c.samples));
      for (SampleTimes& of_sample : times) {
        const std::int64_t root = 100 + random.Below(350);  // of 80,000 in the mean
        const std::int64_t text_ns = c.text_varies ? root * root : 80'000;
        const std::int64_t image_ns = c.text_varies ? 80'000 : root * root;
        of_sample.forward_ns = {image_ns, text_ns, text_ns};
        of_sample.backward_ns = {2 * image_ns, 2 * text_ns, 2 * text_ns};
      }
      const auto order = step.Order(times, 16);
      const auto in_order = MakespanOf(step, times, order, !c.packs);
      const auto as_drawn = MakespanOf(step, times, Drawn(order.size()), !c.packs);
      REQUIRE(IsPermutation(order));
      CHECK(in_order <= as_drawn);
      balanced += static_cast<double>(in_order);
      drawn += static_cast<double>(as_drawn);
    }
    INFO(c.samples << " samples, packs " << c.packs << ", text varies " << c.text_varies << ": "
                   << balanced / drawn);
    CHECK(balanced < c.at_most * drawn);
  }
}

TEST_CASE("samples with lognormal numbers of images are balanced over eight replicas", "[plan]") {
  const Config config = ConfigOf(
      "shapes", {"cluster.ranks=16", "modules.vision.ranks='8-15'",
                 "modules.vision.layout={ dp = 8 }", "modules.language.ranks='0-7'",
                 "modules.language.layout={ dp = 8 }", "modules.language.context=100000",
                 "schedule.micro_batch_size=4", "schedule.microbatches=4", "data.order=balanced"});
  const StepOrder order(config);
  Random random(17);
  double drawn = 0;
  double placed = 0;
  double worst = 0;
  constexpr int kSteps = 20;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<StepShape> shapes;
    for (int i = 0; i < 128; ++i) {
      // The sum of twelve uniform numbers less 6 is about normal; 4 exp(0.8 z) images.
      double z = -6;
      for (int j = 0; j < 12; ++j) z += static_cast<double>(random.Below(1'000'001)) / 1e6;
      StepShape& shape = shapes.emplace_back();
      shape.samples = 1;
      shape.lengths["vision"] = std::llround(4 * std::exp(0.8 * z));
      shape.tokens = 40 + 4 * shape.lengths["vision"];
      shape.labels = 20;
    }
    const auto times = TimesOf(order, shapes);
    drawn += order.MaxOverMean(times, Drawn(times.size())) / kSteps;
    const double balanced = order.MaxOverMean(times, order.Order(times, 4));
    placed += balanced / kSteps;
    worst = std::max(worst, balanced);
  }
  INFO(drawn << " " << placed << " " << worst);
  CHECK(drawn >= 1.3);
  CHECK(placed <= 1.03);
  CHECK(worst <= 1.03);
}

TEST_CASE("an order needs a sample for every place", "[plan]") {
  const StepOrder step(ConfigOf("shapes"));
  const auto times = TimesOf(step, DrawShapes(31, 1));
  CHECK_THROWS_AS(step.Order(times, 4), std::invalid_argument);
  CHECK(step.Order({}, 0).empty());
}

}  // namespace troupe
