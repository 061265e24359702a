#include <memory>

#include <catch2/catch.hpp>

#include "tests/torch/programs_fixture.hpp"

namespace troupe {
namespace {

TEST_CASE("what is computed again has the same bits as what was kept", "[torch]") {
  Config config = SmallConfig();
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2});
  auto microbatches = TwoMicrobatches(config);
  microbatches.push_back(MakeInputs(config, {0, 0, 0, 0}, 3));  // no image at all
  const Outcome kept = Run(config, microbatches);
  for (const Recompute recompute :
       {Recompute{LayerPart::kAttention}, Recompute{LayerPart::kLayer}}) {
    ModuleOf(config, "vision").recompute = recompute;
    ModuleOf(config, "language").recompute = recompute;
    const Outcome again = Run(config, microbatches);
    CHECK(again.loss.loss == kept.loss.loss);
    CHECK(again.squares == kept.squares);
    CHECK(again.gradients == kept.gradients);
  }
}

TEST_CASE("outputs share the memory of the tensors that were computed", "[torch]") {
  const Config config = SmallConfig();
  Job job(config);
  const auto data = std::make_shared<const Inputs>(MakeInputs(config, {2}, 9));
  Buffer kept;
  {
    ForwardResult result =
        job.Program("vision").Forward({.train = false, .inputs = {}, .data = data});
    kept = result.outputs.at(0);
  }
  CHECK(kept.shape() == Shape{8, 16});
  CHECK(kept.use_count() == 1);
}

TEST_CASE("two runs of one layout have the same bits", "[torch]") {
  Config config = SmallConfig();
  config.run.precision = Precision::kFloat32;
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  const Outcome first = Run(config);
  const Outcome second = Run(config);
  CHECK(first.loss.loss == second.loss.loss);
  CHECK(first.gradients == second.gradients);
}

TEST_CASE("backwards whose weights follow later have the same bits as whole ones", "[torch]") {
  Config config = SmallConfig();
  config.run.precision = GENERATE(Precision::kFloat32, Precision::kFloat64);
  ModuleOf(config, "language").As<LlamaConfig>().tied_head = GENERATE(false, true);
  SetLayout(config, "vision", {.tp = 2});
  SetLayout(config, "language", {.tp = 2, .pp = 2});
  const Outcome whole = Run(config);
  Job job(config, /*split=*/true);
  const LossSums loss = job.Train(TwoMicrobatches(config), kScale);
  CHECK(loss.loss == whole.loss.loss);
  CHECK(job.ReduceGradients() == whole.squares);
  CHECK(job.Tensors(TensorKind::kGradient) == whole.gradients);
}

TEST_CASE("float32 gradients are close to those of float64", "[torch]") {
  Config config = SmallConfig();
  const Outcome exact = Run(config);
  config.run.precision = Precision::kFloat32;
  SetLayout(config, "language", {.tp = 4});
  // The libraries sum in an order that depends on the processor; 1.1e-5 and 1.8e-5 were seen.
  CHECK(Difference(exact.gradients, Run(config).gradients) < 5e-5);
}

}  // namespace
}  // namespace troupe
