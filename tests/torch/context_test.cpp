// Samples that are cut over the ranks along cp, and rows over those along tp: what the ranks send each
// other, and what they keep.
#include <catch2/catch.hpp>

#include "plan/pass_memory.hpp"
#include "tests/torch/kept.hpp"
#include "tests/torch/processes.hpp"

namespace troupe {

TEST_CASE(
    "ranks along cp pass keys and values on, once forward and once backward, and one gradient",
    "[torch]") {
  const int cp = GENERATE(2, 3, 4);
  const auto exchange = GENERATE(ContextExchange::kRing, ContextExchange::kGather);
  const auto precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  Config config = LongLanguage({.cp = cp}, precision);
  config.schedule.context_exchange = exchange;
  const Inputs inputs = LongInputs(8);
  const std::vector<double> few = BytesOfMicrobatch(WithLayers(config, 1), inputs);
  const std::vector<double> many = BytesOfMicrobatch(WithLayers(config, 5), inputs);
  const double element = precision == Precision::kBFloat16 ? 2 : 4;
  const double key_values =
      static_cast<double>(inputs.tokens.num_elements()) * 2 * 2 * 16 * element;
  const double most = 3.0 * (cp - 1.0) / cp * key_values;
  for (std::size_t rank = 0; rank < few.size(); ++rank) {
    const double layer = (many[rank] - few[rank]) / 4.0;
    INFO("cp " << cp << ", rank " << rank << ": " << layer / most);
    CHECK(layer <= 1.02 * most);
    CHECK(layer >= 0.98 * most);
  }
}

TEST_CASE("cp and tp divide the activations that a forward keeps", "[torch]") {
  const auto with_heads = [](Layout layout) {
    Config config = LongLanguage(layout, Precision::kFloat32);
    ModuleOf(config, "language").As<LlamaConfig>().kv_heads = 4;  // none is shared
    return config;
  };
  const double whole = KeptByLayer(with_heads({}));
  for (const Layout& layout : {Layout{.cp = 2}, Layout{.cp = 4}, Layout{.tp = 2}, Layout{.tp = 4},
                               Layout{.tp = 2, .cp = 2}}) {
    Config config = with_heads(layout);
    const double all = KeptByLayer(config);
    INFO(ToString(layout) << " keeps " << all / whole << " of what one rank would");
    CHECK(all <= 1.1 * whole);
    CHECK(all >= 0.7 * whole);
    ModuleOf(config, "language").layout.sp = false;
    if (layout.tp > 1) CHECK(KeptByLayer(config) > 1.1 * whole);
  }
}

TEST_CASE("samples with fewer tokens than chunks have the gradients of padded ones", "[torch]") {
  const std::vector<std::int64_t> lengths = {1, 2, 5, 7, 7, 48};
  Inputs inputs = LongInputs(std::ssize(lengths));
  for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
    const auto first = static_cast<std::int64_t>(sample) * kTokensOfEach;
    for (std::int64_t t = lengths[sample]; t < kTokensOfEach; ++t) {
      inputs.labels.as<std::int64_t>()[first + t] = -100;
    }
    inputs.table.samples.push_back(static_cast<std::int64_t>(sample));
  }
  const auto train = [&](Layout layout, ContextExchange exchange) {
    Config config = LongLanguage(layout, Precision::kFloat64);
    config.schedule.context_exchange = exchange;
    inputs.table.rows = lengths;
    if (layout.cp == 1) inputs.table.rows.assign(lengths.size(), kTokensOfEach);
    Job job(config);
    const LossSums loss = job.TrainRound({{inputs}, {inputs}}, 1.0 / 20.0);
    job.ReduceGradients();
    return std::pair(loss.loss, job.Tensors(TensorKind::kGradient));
  };
  const auto [loss, gradients] = train({}, ContextExchange::kRing);
  for (const int cp : {2, 3, 4}) {
    for (const auto exchange : {ContextExchange::kRing, ContextExchange::kGather}) {
      const auto [own_loss, own_gradients] = train({.cp = cp}, exchange);
      INFO("cp " << cp);
      CHECK(own_loss == Approx(loss).epsilon(1e-12));
      CHECK(Difference(own_gradients, gradients) < 1e-12);
    }
  }
}

TEST_CASE("check counts the tokens of a rank along cp", "[torch]") {
  const auto activations = [](Layout layout) {
    const Config config = LongLanguage(layout, Precision::kFloat32);
    return EstimateUnit(WithLayers(config, 9), "language", 0).kept -
           EstimateUnit(WithLayers(config, 1), "language", 0).kept;
  };
  CHECK(activations({.cp = 2}) == activations({}) / 2);
  CHECK(activations({.cp = 3}) == activations({}) / 3);
}

}  // namespace troupe
