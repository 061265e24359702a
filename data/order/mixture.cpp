#include "data/order/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

constexpr double kMillion = 1e6;
constexpr std::int64_t kLongestPeriod = 4'000'000;

/// Returns the weights as whole numbers without a common divisor.
std::vector<std::int64_t> SharesOf(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> shares;
  const auto shares_of_unit = [&](double unit) {
    shares.clear();
    bool exact = true;
    for (const double weight : weights) {
      const double share = std::round(weight / unit);
      exact = exact && std::abs(share * unit - weight) <= 1e-9 * weight;
      shares.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(share)));
    }
    std::int64_t divisor = 0;
    for (const std::int64_t share : shares) divisor = std::gcd(divisor, share);
    for (std::int64_t& share : shares) share /= divisor;
    return exact && std::reduce(shares.begin(), shares.end()) <= kLongestPeriod;
  };
  const bool stated_exactly = sum / (1 / kMillion) < 1e15 && shares_of_unit(1 / kMillion);
  if (!stated_exactly) shares_of_unit(sum / kMillion);
  return shares;
}

}  // namespace

Mixture::Mixture(const std::vector<double>& weights) {
  constexpr std::size_t kMostSources = 10'000;
  const auto is_weight = [](double weight) { return std::isfinite(weight) && weight > 0; };
  if (weights.empty() || weights.size() > kMostSources ||
      !std::ranges::all_of(weights, is_weight)) {
    throw std::invalid_argument("mixture: expected up to 10000 positive weights");
  }
  shares_ = SharesOf(weights);
  period_ = std::reduce(shares_.begin(), shares_.end());
  const auto count = std::ssize(shares_);
  if (count == 1) return;
  // Of k sources, one with share s of period p may give its x-th sample at place n, counted from 1, once
  // n * s / p >= x - 1 + u, and must have given it when n * s / p would exceed x - u, with
  // u = 1 / (2k - 2). Whole numbers: nothing is rounded.
  const std::int64_t parts = 2 * count - 2;
  std::vector<std::int64_t> given(shares_.size(), 0);
  const auto first_of = [&](std::size_t i) {
    const std::int64_t owed = period_ * (given[i] * parts + 1);
    const std::int64_t rate = shares_[i] * parts;
    return (owed + rate - 1) / rate;
  };
  const auto last_of = [&](std::size_t i) {
    const std::int64_t owed = period_ * ((given[i] + 1) * parts - 1);
    const std::int64_t rate = shares_[i] * parts;
    return owed / rate;
  };
  using Due = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> later;  // by first place
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due;    // by last place
  for (std::size_t i = 0; i < shares_.size(); ++i) later.emplace(first_of(i), i);
  for (std::int64_t n = 1; n <= period_; ++n) {
    for (; !later.empty() && later.top().first <= n; later.pop()) {
      due.emplace(last_of(later.top().second), later.top().second);
    }
    const std::size_t source = due.empty() ? later.top().second : due.top().second;
    due.empty() ? later.pop() : due.pop();
    sources_.push_back(static_cast<std::uint16_t>(source));
    before_.push_back(static_cast<std::uint32_t>(given[source]++));
    later.emplace(first_of(source), source);
  }
}

Mixture::Drawn Mixture::At(std::int64_t place) const {
  if (sources_.empty()) return {0, place};
  const std::int64_t periods = place / period_;
  const auto at = static_cast<std::size_t>(place % period_);
  const int source = sources_[at];
  return {source, periods * shares_[static_cast<std::size_t>(source)] + before_[at]};
}

}  // namespace troupe
