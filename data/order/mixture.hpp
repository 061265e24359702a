// Which source gives the sample at each place of the endless order of training.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// Every prefix of the order holds each source's share to within one sample. The order repeats after a
/// period, which is computed once; a place costs one lookup.
///   source   Tijdeman, "The chairman assignment problem", 1980: of the sources that are owed enough,
///            the one whose next sample is due first
class Mixture {
 public:
  /// `weights`: positive. Weights with at most six decimals give exact shares; others are rounded to
  /// millionths of their sum. Throws std::invalid_argument.
  explicit Mixture(const std::vector<double>& weights);

  /// A sample of a source. `draw` counts the samples of that source before it.
  struct Drawn {
    int source = 0;
    std::int64_t draw = 0;
  };
  Drawn At(std::int64_t place) const;

  /// The shares, whole numbers without a common divisor; their sum is the period.
  const std::vector<std::int64_t>& shares() const { return shares_; }
  std::int64_t period() const { return period_; }

 private:
  std::vector<std::int64_t> shares_;
  std::int64_t period_ = 0;
  std::vector<std::uint16_t> sources_;  ///< by place in the period; empty with one source
  std::vector<std::uint32_t> before_;   ///< by place: samples of its source before it
};

}  // namespace troupe
