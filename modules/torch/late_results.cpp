#include "modules/torch/late_results.hpp"

#include <cmath>
#include <stdexcept>

#include "modules/torch/numerics.hpp"

namespace troupe {
namespace {

/// Largest magnitudes of some tensors and where they stand in their list.
struct Magnitudes {
  std::vector<std::size_t> places;
  std::vector<at::Tensor> values;  ///< [] float64 each
};

/// One pass over the memory of each; a NaN stays one, and so does an infinity.
Magnitudes LargestOf(const std::vector<at::Tensor>& tensors) {
  Magnitudes largest;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || tensors[i].numel() == 0) continue;
    largest.places.push_back(i);
    largest.values.push_back(at::linalg_vector_norm(tensors[i].detach(), INFINITY).to(at::kDouble));
  }
  return largest;
}

void RequireFinite(const Magnitudes& largest, const double* values, const std::string& what) {
  for (std::size_t i = 0; i < largest.places.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    throw std::runtime_error(what + " " + std::to_string(largest.places[i]) +
                             " is not finite: " + (std::isnan(values[i]) ? "nan" : "inf"));
  }
}

}  // namespace

std::function<void(ForwardResult&)> FinishForward(const std::vector<at::Tensor>& outputs,
                                                  const at::Tensor& late_loss) {
  const Magnitudes largest = LargestOf(outputs);
  std::vector<at::Tensor> numbers = largest.values;
  if (late_loss.defined()) {
    for (const at::Tensor& sum : late_loss.unbind()) numbers.push_back(sum);
  }
  if (numbers.empty()) return {};
  return [largest, home = BringHome(at::stack(numbers)),
          has_loss = late_loss.defined()](ForwardResult& result) {
    const double* const values = home.data_ptr<double>();
    RequireFinite(largest, values, "output");
    if (!has_loss) return;
    const double* const sums = values + largest.places.size();
    if (!std::isfinite(sums[0])) throw std::runtime_error("the loss is " + std::to_string(sums[0]));
    result.loss.loss += sums[0];
    result.loss.correct += static_cast<std::int64_t>(sums[1]);
    result.loss.content_correct += static_cast<std::int64_t>(sums[2]);
  };
}

std::function<void(BackwardResult&)> FinishBackward(const std::vector<at::Tensor>& gradients) {
  const Magnitudes largest = LargestOf(gradients);
  if (largest.values.empty()) return {};
  return [largest, home = BringHome(at::stack(largest.values))](BackwardResult&) {
    RequireFinite(largest, home.data_ptr<double>(), "gradient of input");
  };
}

}  // namespace troupe
