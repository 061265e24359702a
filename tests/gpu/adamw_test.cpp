#include "gpu/kernels/adamw.hpp"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {

TEST_CASE("AdamW steps as Loshchilov and Hutter write it", "[gpu-kernels]") {
  AdamWStep step{.learning_rate = 0.1,
                 .weight_decay = 0.5,
                 .beta1 = 0.9,
                 .beta2 = 0.99,
                 .epsilon = 1e-3,
                 .gradient_scale = 0.25,
                 .step = 1};
  const std::vector<double> gradients = {4.0, -8.0, 0.0};
  std::vector<double> values = {1.0, 2.0, -3.0};
  std::vector<double> first(3);
  std::vector<double> second(3);
  std::vector<double> expected = values;
  std::vector<double> m(3);
  std::vector<double> v(3);
  for (step.step = 1; step.step <= 5; ++step.step) {
    ApplyAdamW(step, 3, gradients.data(), values.data(), first.data(), second.data());
    const auto n = static_cast<double>(step.step);
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = 0.25 * gradients[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.99 * v[i] + 0.01 * g * g;
      const double corrected_m = m[i] / (1.0 - std::pow(0.9, n));
      const double corrected_v = v[i] / (1.0 - std::pow(0.99, n));
      expected[i] -= 0.1 * 0.5 * expected[i] + 0.1 * corrected_m / (std::sqrt(corrected_v) + 1e-3);
      CHECK(values[i] == Approx(expected[i]).epsilon(1e-12));
    }
  }
}

}  // namespace troupe
