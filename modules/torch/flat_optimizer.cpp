#include "modules/torch/flat_optimizer.hpp"

#include "modules/torch/cuda/flat_adamw.hpp"
#include "modules/torch/row_kernels.hpp"

namespace troupe {
namespace {

struct LoopOptimizer : FlatOptimizer {
  void Step(const AdamWStep& step, const FlatRun& run) override {
    AT_DISPATCH_FLOATING_TYPES(run.values.scalar_type(), "AdamW", [&] {
      ApplyAdamW(step, run.values.numel(), run.gradients.data_ptr<scalar_t>(),
                 run.values.data_ptr<scalar_t>(), run.first_moments.data_ptr<scalar_t>(),
                 run.second_moments.data_ptr<scalar_t>());
    });
    if (run.rounded.defined()) at::Tensor(run.rounded).copy_(run.values);
  }

  ReducedGradients SumOfSquares(const std::vector<at::Tensor>& parts) override {
    double squares = 0.0;
    for (const at::Tensor& part : parts) {
      AT_DISPATCH_FLOATING_TYPES(part.scalar_type(), "SumOfSquares", [&] {
        squares += troupe::SumOfSquares(part.data_ptr<scalar_t>(), part.numel());
      });
    }
    return {squares};
  }
};

struct PortableOptimizer : FlatOptimizer {
  void Step(const AdamWStep& step, const FlatRun& run) override {
    if (run.values.is_cuda() && run.values.scalar_type() == at::kFloat) {
      return ApplyAdamWOnDevice(step, run);
    }
    const AdamWFactors<double> f(step);
    at::Tensor values = run.values;
    at::Tensor first = run.first_moments;
    at::Tensor second = run.second_moments;
    const at::Tensor gradients = run.gradients * f.scale;
    first.mul_(f.beta1).add_(gradients, f.rest1);
    second.mul_(f.beta2).addcmul_(gradients, gradients, f.rest2);
    values.mul_(f.keep).addcdiv_(first, second.sqrt().mul_(f.root).add_(f.epsilon), -f.rate);
    if (run.rounded.defined()) at::Tensor(run.rounded).copy_(values);
  }

  ReducedGradients SumOfSquares(const std::vector<at::Tensor>& parts) override {
    if (parts.empty()) return {};
    std::vector<at::Tensor> norms;
    for (const at::Tensor& part : parts) norms.push_back(at::linalg_vector_norm(part));
    const at::Tensor home = BringHome(at::stack(norms).to(at::kDouble).square().sum());
    return {0.0, [home](ReducedGradients& done) { done.squared_norm = *home.data_ptr<double>(); }};
  }
};

}  // namespace

std::unique_ptr<FlatOptimizer> MakeFlatOptimizer(const Numerics& numerics) {
  if (numerics.portable) return std::make_unique<PortableOptimizer>();
  return std::make_unique<LoopOptimizer>();
}

}  // namespace troupe
