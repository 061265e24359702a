#include "modules/torch/flat_optimizer.hpp"

#include <algorithm>

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

/// Elements that the library steps at once, since it needs room for two copies of them.
constexpr std::int64_t kChunk = std::int64_t{1} << 22;

/// [first, first + count) of a run.
FlatRun ChunkOf(const FlatRun& run, std::int64_t first, std::int64_t count) {
  const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, first, count); };
  return {.gradients = part(run.gradients),
          .values = part(run.values),
          .first_moments = part(run.first_moments),
          .second_moments = part(run.second_moments),
          .rounded = run.rounded.defined() ? part(run.rounded) : at::Tensor()};
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
  for (std::int64_t first = 0; first < run.values.numel(); first += kChunk) {
    const FlatRun part = ChunkOf(run, first, std::min(kChunk, run.values.numel() - first));
    (portable ? StepByLibrary : StepByLoop)(step, part);
    if (part.rounded.defined()) at::Tensor(part.rounded).copy_(part.values);
  }
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
