// Root-mean-square norm of rows: the plain loops. The device versions are in
// gpu/kernels/device.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

/// y [M, H] = x * rstd * w with rstd [M] = 1 / sqrt(mean(x^2) + epsilon) of each row. T is float or
/// double.
template <class T>
void RmsNormRows(const T* x, const T* weight, std::int64_t num_rows, std::int64_t hidden,
                 double epsilon, T* y, T* rstd);

/// The gradients: writes x_gradient [M, H], adds to weight_gradient [H] unless it is null.
template <class T>
void RmsNormGradient(const T* y_gradient, const T* x, const T* weight, const T* rstd,
                     std::int64_t num_rows, std::int64_t hidden, T* x_gradient, T* weight_gradient);

}  // namespace troupe
