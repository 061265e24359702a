// AdamW in one pass over memory: the plain loop. The device version is in gpu/kernels/device.hpp.
#pragma once

#include <cstdint>

namespace troupe {

/// One update of elements that share their settings.
struct AdamWStep {
  double learning_rate = 0.0;
  double weight_decay = 0.0;  ///< decoupled: values shrink by learning_rate * weight_decay
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;        ///< added to the corrected root of the second moment
  double gradient_scale = 1.0;  ///< the clip coefficient
  std::int64_t step = 1;        ///< 1 at the first update: corrects the bias of the moments
};

/// The factors common to all elements of an update, in its precision.
template <class T>
struct AdamWFactors {
  T scale, beta1, beta2, rest1, rest2, epsilon;
  T keep;  ///< factor of the weight decay
  T rate;  ///< learning rate, corrected for the bias of the first moment
  T root;  ///< corrects the bias of the second moment's root

  explicit AdamWFactors(const AdamWStep& step);
};

/// In place on value, first and second moment, [count] each.
template <class T>
void ApplyAdamW(const AdamWStep& step, std::int64_t count, const T* gradient, T* value, T* first,
                T* second);

}  // namespace troupe
