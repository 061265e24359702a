#include "gpu/kernels/rms_norm.hpp"

#include <cmath>

#include "gpu/kernels/sum_lanes.hpp"

namespace troupe {

template <class T>
void RmsNormRows(const T* x, const T* weight, std::int64_t num_rows, std::int64_t hidden,
                 double epsilon, T* y, T* rstd) {
  for (std::int64_t m = 0; m < num_rows; ++m, x += hidden, y += hidden) {
    const T squares = SumLanes<T>(hidden, [x](std::int64_t i) { return x[i] * x[i]; });
    const T r = T(1) / std::sqrt(squares / static_cast<T>(hidden) + static_cast<T>(epsilon));
    rstd[m] = r;
    for (std::int64_t i = 0; i < hidden; ++i) y[i] = x[i] * r * weight[i];
  }
}

template <class T>
void RmsNormGradient(const T* y_gradient, const T* x, const T* weight, const T* rstd,
                     std::int64_t num_rows, std::int64_t hidden, T* x_gradient,
                     T* weight_gradient) {
  for (std::int64_t m = 0; m < num_rows; ++m) {
    const T r = rstd[m];
    const T dot =
        SumLanes<T>(hidden, [=](std::int64_t i) { return y_gradient[i] * weight[i] * x[i]; });
    const T pull = dot * r * r / static_cast<T>(hidden);
    for (std::int64_t i = 0; i < hidden; ++i) {
      x_gradient[i] = r * (y_gradient[i] * weight[i] - x[i] * pull);
    }
    if (weight_gradient) {
      for (std::int64_t i = 0; i < hidden; ++i) weight_gradient[i] += y_gradient[i] * x[i] * r;
    }
    y_gradient += hidden;
    x += hidden;
    x_gradient += hidden;
  }
}

#define TROUPE_FOR_TYPE(T)                                                                   \
  template void RmsNormRows(const T*, const T*, std::int64_t, std::int64_t, double, T*, T*); \
  template void RmsNormGradient(const T*, const T*, const T*, const T*, std::int64_t,        \
                                std::int64_t, T*, T*);
TROUPE_FOR_TYPE(float)
TROUPE_FOR_TYPE(double)
#undef TROUPE_FOR_TYPE

}  // namespace troupe
