#include "modules/torch/flat_optimizer.hpp"

#include "modules/torch/cuda/kernels.hpp"
#include "modules/torch/numerics.hpp"

namespace troupe {
namespace {

void StepByLoop(const AdamWStep& step, const FlatRun& run) {
  AT_DISPATCH_FLOATING_TYPES(run.values.scalar_type(), "AdamW", [&] {
    ApplyAdamW(step, run.values.numel(), run.gradients.data_ptr<scalar_t>(),
               run.values.data_ptr<scalar_t>(), run.first_moments.data_ptr<scalar_t>(),
               run.second_moments.data_ptr<scalar_t>());
  });
}

void StepByLibrary(const AdamWStep& step, const FlatRun& run) {
  const AdamWFactors<double> f(step);
  at::Tensor values = run.values;
  at::Tensor first = run.first_moments;
  at::Tensor second = run.second_moments;
  const at::Tensor gradients = run.gradients * f.scale;
  first.mul_(f.beta1).add_(gradients, f.rest1);
  second.mul_(f.beta2).addcmul_(gradients, gradients, f.rest2);
  values.mul_(f.keep).addcdiv_(first, second.sqrt().mul_(f.root).add_(f.epsilon), -f.rate);
}

}  // namespace

void StepAdamW(const AdamWStep& step, const FlatRun& run, bool portable) {
  if (run.values.is_cuda() && run.values.scalar_type() == at::kFloat) {
    return ApplyAdamWOnDevice(step, run);
  }
  (portable ? StepByLibrary : StepByLoop)(step, run);
  if (run.rounded.defined()) at::Tensor(run.rounded).copy_(run.values);
}

ReducedGradients SumOfSquares(const std::vector<PartGradient>& gradients) {
  if (gradients.empty()) return {};
  std::vector<at::Tensor> norms;
  std::vector<std::string> parts;
  for (const PartGradient& gradient : gradients) {
    norms.push_back(at::linalg_vector_norm(gradient.values));
    parts.push_back(gradient.part);
  }
  const at::Tensor squares = at::stack(norms).to(at::kDouble).square();
  const at::Tensor home = BringHome(at::cat({squares.sum().view({1}), squares}));
  const auto fill = [home, parts](ReducedGradients& done) {
    const auto* next = home.data_ptr<double>();
    done.squared_norm = *next++;
    for (const std::string& part : parts) done.squared_norms[part] += *next++;
  };
  ReducedGradients result;
  if (squares.device().is_cpu()) {
    fill(result);
  } else {
    result.finish = fill;
  }
  return result;
}

}  // namespace troupe
