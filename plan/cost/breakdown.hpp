// Seconds, by what they are spent on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace troupe {

/// What a rank does in a pass.
enum class Spent : std::uint8_t {
  kLinears,
  kAttention,
  kElements,   ///< norms, activations, residuals
  kStarting,   ///< operations and passes, whatever their sizes
  kTensor,     ///< collectives along tp
  kContext,    ///< exchange of keys and values along cp, as far as attention does not hide it
  kExperts,    ///< exchange of tokens along ep
  kRecompute,  ///< operations that run again in a backward
  kCopies,     ///< of activations to host memory and back, as far as computation does not hide them
};
inline constexpr std::size_t kNumSpent = 9;
/// In the order of Spent.
inline const std::vector<std::string> kSpentWords = {
    "linears", "attention", "elements", "starting", "tp", "cp", "ep", "recompute", "copies"};

class Breakdown {
 public:
  double& operator[](Spent on) { return seconds_[static_cast<std::size_t>(on)]; }
  double operator[](Spent on) const { return seconds_[static_cast<std::size_t>(on)]; }
  double total() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }
  /// Returns what is spent on sending, not on computing.
  double communication() const {
    return (*this)[Spent::kTensor] + (*this)[Spent::kContext] + (*this)[Spent::kExperts];
  }
  Breakdown& operator+=(const Breakdown& other) {
    for (std::size_t i = 0; i < kNumSpent; ++i) seconds_[i] += other.seconds_[i];
    return *this;
  }
  Breakdown& operator*=(double factor) {
    for (double& seconds : seconds_) seconds *= factor;
    return *this;
  }

 private:
  std::array<double, kNumSpent> seconds_ = {};
};

/// The passes of a stage for one unit of work.
struct PassCost {
  Breakdown forward;
  Breakdown inputs;       ///< the part of the backward that leads to the gradients of the inputs
  Breakdown weights;      ///< the part for the gradients of the weights
  double hidden_s = 0.0;  ///< communication that computation hides

  double backward_s() const { return inputs.total() + weights.total(); }
  PassCost& operator+=(const PassCost& other) {
    forward += other.forward;
    inputs += other.inputs;
    weights += other.weights;
    hidden_s += other.hidden_s;
    return *this;
  }
};

}  // namespace troupe
