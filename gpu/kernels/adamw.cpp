#include "gpu/kernels/adamw.hpp"

#include <cmath>

namespace troupe {

template <class T>
AdamWFactors<T>::AdamWFactors(const AdamWStep& step)
    : scale(static_cast<T>(step.gradient_scale)),
      beta1(static_cast<T>(step.beta1)),
      beta2(static_cast<T>(step.beta2)),
      rest1(static_cast<T>(1.0 - step.beta1)),
      rest2(static_cast<T>(1.0 - step.beta2)),
      epsilon(static_cast<T>(step.epsilon)),
      keep(static_cast<T>(1.0 - step.learning_rate * step.weight_decay)),
      rate(static_cast<T>(step.learning_rate /
                          (1.0 - std::pow(step.beta1, static_cast<double>(step.step))))),
      root(static_cast<T>(1.0 /
                          std::sqrt(1.0 - std::pow(step.beta2, static_cast<double>(step.step))))) {}

template <class T>
void ApplyAdamW(const AdamWStep& step, std::int64_t count, const T* __restrict gradient,
                T* __restrict value, T* __restrict first, T* __restrict second) {
  const AdamWFactors<T> f(step);
  for (std::int64_t i = 0; i < count; ++i) {
    const T g = gradient[i] * f.scale;
    first[i] = f.beta1 * first[i] + f.rest1 * g;
    second[i] = f.beta2 * second[i] + f.rest2 * g * g;
    value[i] = f.keep * value[i] - f.rate * first[i] / (std::sqrt(second[i]) * f.root + f.epsilon);
  }
}

template struct AdamWFactors<float>;
template struct AdamWFactors<double>;
template void ApplyAdamW(const AdamWStep&, std::int64_t, const float*, float*, float*, float*);
template void ApplyAdamW(const AdamWStep&, std::int64_t, const double*, double*, double*, double*);

}  // namespace troupe
