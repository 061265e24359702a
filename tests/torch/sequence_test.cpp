// Rows that are cut over tensor-parallel ranks: what the ranks send each other, and what they keep.
#include <catch2/catch.hpp>

#include "layout/at.hpp"
#include "plan/pass_memory.hpp"
#include "tests/torch/job.hpp"
#include "tests/torch/processes.hpp"

namespace troupe {

TEST_CASE("a layer with cut rows sends two gathers and two sums in each pass, and two gathers more",
          "[torch]") {
  const int tp = GENERATE(2, 4);
  const auto precision = GENERATE(Precision::kFloat32, Precision::kBFloat16);
  Config config = LanguageAlone({.tp = tp}, precision);
  ModuleOf(config, "language").As<LlamaConfig>().kv_heads = 4;
  const Inputs inputs = MakeInputs(config, {0, 0, 0, 0, 0, 0, 0, 0}, 3);
  const std::vector<double> few = BytesOfMicrobatch(WithLayers(config, 1), inputs);
  const std::vector<double> many = BytesOfMicrobatch(WithLayers(config, 5), inputs);
  const double element = precision == Precision::kBFloat16 ? 2 : 4;
  const double rows = static_cast<double>(inputs.tokens.num_elements()) * 64 * element;
  const double most = 10.0 * (tp - 1.0) / tp * rows;
  for (std::size_t rank = 0; rank < few.size(); ++rank) {
    const double layer = (many[rank] - few[rank]) / 4.0;
    INFO("tp " << tp << ", rank " << rank << ": " << layer / most);
    CHECK(layer <= 1.02 * most);
    CHECK(layer >= 0.98 * most);
  }
}

TEST_CASE("check counts the rows of a layer once for all ranks along tp", "[torch]") {
  const auto activations = [](int tp, bool sp) {
    Config config = LanguageAlone({.tp = tp, .sp = sp}, Precision::kFloat32);
    const double with =
        static_cast<double>(EstimateUnit(WithLayers(config, 9), "language", 0).kept);
    return with - static_cast<double>(EstimateUnit(WithLayers(config, 1), "language", 0).kept);
  };
  for (const int tp : {2, 4}) {
    CHECK(activations(tp, true) <= 1.1 * activations(1, true) / tp);
    CHECK(activations(tp, false) > 1.1 * activations(1, true) / tp);
  }
}

}  // namespace troupe
