#include "modules/torch/adamw.hpp"

#include <cmath>

namespace troupe {

template <class T>
void ApplyAdamW(const AdamWStep& step, std::int64_t count, const T* __restrict gradient,
                T* __restrict value, T* __restrict first, T* __restrict second) {
  const auto n = static_cast<double>(step.step);
  const auto scale = static_cast<T>(step.gradient_scale);
  const auto beta1 = static_cast<T>(step.beta1);
  const auto beta2 = static_cast<T>(step.beta2);
  const auto rest1 = static_cast<T>(1.0 - step.beta1);
  const auto rest2 = static_cast<T>(1.0 - step.beta2);
  const auto epsilon = static_cast<T>(step.epsilon);
  const auto keep = static_cast<T>(1.0 - step.learning_rate * step.weight_decay);
  const auto rate = static_cast<T>(step.learning_rate / (1.0 - std::pow(step.beta1, n)));
  const auto root = static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(step.beta2, n)));
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * scale;
    first[i] = beta1 * first[i] + rest1 * g;
    second[i] = beta2 * second[i] + rest2 * g * g;
    value[i] = keep * value[i] - rate * first[i] / (std::sqrt(second[i]) * root + epsilon);
  }
}

template void ApplyAdamW(const AdamWStep&, std::int64_t, const float*, float*, float*, float*);
template void ApplyAdamW(const AdamWStep&, std::int64_t, const double*, double*, double*, double*);

}  // namespace troupe
