#include "actors/slow_ranks.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// Of a job's start, in which memory and threads are made.
constexpr std::int64_t kWarmUpSteps = 2;
/// A rank is slow only if it delays the step by at least this part of it.
constexpr double kLeastDelay = 0.05;

/// 0 without values.
double Median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

SlowRanks::SlowRanks(SlowLimits limits, std::map<int, PeerRanks> peers)
    : limits_(limits), peers_(std::move(peers)) {}

SlowRanks::Usual SlowRanks::UsualFor(int rank, const std::map<int, double>& own_s) const {
  const PeerRanks& all = peers_.at(rank);
  std::vector<double> peers;
  for (const int peer : all.ranks) peers.push_back(own_s.at(peer));
  const double of_peers = Median(std::move(peers));
  if (all.in_another_process) return {of_peers, true};
  std::vector<double> changes;
  for (const auto& [other, course] : courses_) {
    if (other != rank && course.baseline_s > 0.0) {
      changes.push_back(own_s.at(other) / course.baseline_s);
    }
  }
  // A rank is not slow because others became faster.
  const double change = changes.empty() ? 0.0 : std::max(1.0, Median(std::move(changes)));
  const double of_itself = courses_.at(rank).baseline_s * change;
  const bool is_of_peers = of_itself <= 0.0 || (of_peers > 0.0 && of_peers <= of_itself);
  return is_of_peers ? Usual{of_peers, true} : Usual{of_itself, false};
}

std::vector<SlowRank> SlowRanks::OnStep(double step_s, const std::map<int, double>& own_s) {
  if (limits_.factor <= 0.0 || ++steps_ <= kWarmUpSteps) return {};
  for (const auto& [rank, own] : own_s) {
    Course& course = courses_[rank];
    if (course.baseline_s > 0.0) continue;
    course.first_s.push_back(own);
    if (std::ssize(course.first_s) == limits_.steps) {
      course.baseline_s = Median(std::exchange(course.first_s, {}));
    }
  }
  std::vector<SlowRank> named;
  for (const auto& [rank, own] : own_s) {
    Course& course = courses_.at(rank);
    const Usual usual = UsualFor(rank, own_s);
    if (usual.s <= 0.0 || own <= limits_.factor * usual.s) {
      course.own_s.clear();
      course.usual_s.clear();
      continue;
    }
    // The step may have taken long for another reason, such as a checkpoint: this one does not count.
    if (own - usual.s < kLeastDelay * step_s || IsSlow(course)) continue;
    course.own_s.push_back(own);
    course.usual_s.push_back(usual.s);
    if (!IsSlow(course)) continue;
    named.push_back({.rank = rank,
                     .own_s = Median(course.own_s),
                     .usual_s = Median(course.usual_s),
                     .steps = limits_.steps,
                     .next_to_peers = usual.of_peers});
  }
  return named;
}

std::vector<int> SlowRanks::SlowNow() const {
  std::vector<int> slow;
  for (const auto& [rank, course] : courses_) {
    if (IsSlow(course)) slow.push_back(rank);
  }
  return slow;
}

}  // namespace troupe
