#include "plan/search/choices.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace troupe {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// What the options chosen so far add up to.
struct Sums {
  int ranks = 0;
  double bytes = 0.0;
  double first_s = 0.0;
  double period_s = 0.0;
  double fixed_s = 0.0;
  double after_s = 0.0;

  void Add(const RunOption& option, bool chain) {
    ranks += option.ranks;
    bytes += option.memory_bytes;
    first_s = chain ? first_s + option.first_s : std::max(first_s, option.first_s);
    period_s = std::max(period_s, option.period_s);
    fixed_s += option.fixed_s;
    after_s = std::max(after_s, option.after_s);
  }
};

double TimeOf(const SinkOption& sink, const Sums& sums) {
  return sink.own.fixed_s + sums.fixed_s + sink.own.first_s + sums.first_s +
         static_cast<double>(sink.units - 1) * std::max(sink.own.period_s, sums.period_s) +
         std::max(sink.own.after_s, sums.after_s);
}

/// Whether every field of `a` is at most that of `b`.
bool AtMost(const RunOption& a, const RunOption& b) {
  return a.ranks <= b.ranks && a.memory_bytes <= b.memory_bytes && a.first_s <= b.first_s &&
         a.period_s <= b.period_s && a.fixed_s <= b.fixed_s && a.after_s <= b.after_s;
}

/// The options of a module by ascending ranks, without those that another one beats or equals.
class Front {
 public:
  explicit Front(const std::vector<RunOption>& options) : options_(options) {
    std::vector<std::size_t> order(options.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const RunOption& x = options[a];
      const RunOption& y = options[b];
      return std::tuple(x.ranks, x.period_s, x.first_s, x.fixed_s, x.after_s, x.memory_bytes) <
             std::tuple(y.ranks, y.period_s, y.first_s, y.fixed_s, y.after_s, y.memory_bytes);
    });
    for (const std::size_t index : order) {
      const RunOption& option = options[index];
      if (IsBeaten(option)) continue;
      RunOption least = least_.empty() ? option : least_.back();
      least.first_s = std::min(least.first_s, option.first_s);
      least.period_s = std::min(least.period_s, option.period_s);
      least.fixed_s = std::min(least.fixed_s, option.fixed_s);
      least.after_s = std::min(least.after_s, option.after_s);
      least.memory_bytes = std::min(least.memory_bytes, option.memory_bytes);
      kept_.push_back(index);
      least_.push_back(least);
      ranks_.push_back(option.ranks);
    }
  }

  std::size_t IndexOf(std::size_t place) const { return kept_[place]; }
  const RunOption& At(std::size_t place) const { return options_[kept_[place]]; }
  /// The number of options with at most that many ranks.
  std::size_t Within(int ranks) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ranks_, ranks) - ranks_.begin());
  }
  /// The least of each field among the first `count` options, and the ranks of the first one.
  const RunOption& LeastOf(std::size_t count) const { return least_[count - 1]; }
  int least_ranks() const { return ranks_.front(); }
  bool empty() const { return kept_.empty(); }

 private:
  bool IsBeaten(const RunOption& option) const {
    if (least_.empty()) return false;
    const RunOption& least = least_.back();
    // What is less than all in some field is beaten by none.
    if (option.first_s < least.first_s || option.period_s < least.period_s ||
        option.fixed_s < least.fixed_s || option.after_s < least.after_s ||
        option.memory_bytes < least.memory_bytes) {
      return false;
    }
    return std::any_of(kept_.rbegin(), kept_.rend(),
                       [&](std::size_t kept) { return AtMost(options_[kept], option); });
  }

  const std::vector<RunOption>& options_;
  std::vector<std::size_t> kept_;
  std::vector<RunOption> least_;
  std::vector<int> ranks_;
};

/// Looks for the best choice of all other modules for one sink.
class SinkSearch {
 public:
  SinkSearch(const ChoiceProblem& problem, const SinkOption& sink, const std::vector<Front>& fronts)
      : problem_(problem), sink_(sink), fronts_(fronts) {
    chosen_.resize(fronts.size());
  }

  /// The least time that any choice could take; kNever if there is none.
  double Bound() const { return BoundFrom(0, Sums()); }

  /// Returns the shortest step below `limit_s`.
  std::optional<Choice> Fastest(double limit_s) {
    best_.reset();
    limit_s_ = limit_s;
    GoFaster(0, Sums());
    return best_;
  }

  /// Returns the fewest ranks, at most `most_ranks`, with a step of at most `limit_s`; of those the
  /// fastest.
  std::optional<Choice> Smallest(double limit_s, int most_ranks) {
    best_.reset();
    limit_s_ = limit_s;
    most_ranks_ = most_ranks;
    GoSmaller(0, Sums());
    return best_;
  }

 private:
  int ranks_left(const Sums& sums) const {
    return problem_.max_ranks - sink_.own.ranks - sums.ranks;
  }

  double BoundFrom(std::size_t module, Sums sums) const {
    int left = ranks_left(sums);
    if (left < 0 || sums.bytes > sink_.free_bytes) return kNever;
    // Each of the others may take what all of them share.
    for (std::size_t m = module; m < fronts_.size(); ++m) {
      const std::size_t count = fronts_[m].empty() ? 0 : fronts_[m].Within(left);
      if (count == 0) return kNever;
      RunOption least = fronts_[m].LeastOf(count);
      least.ranks = 0;
      sums.Add(least, problem_.chain);
    }
    return sums.bytes > sink_.free_bytes ? kNever : TimeOf(sink_, sums);
  }

  void Keep(const Sums& sums, double step_s) {
    Choice found{.group = sink_.group, .ranks = sink_.own.ranks + sums.ranks, .step_s = step_s};
    for (std::size_t m = 0; m < fronts_.size(); ++m) {
      found.options.push_back(fronts_[m].IndexOf(chosen_[m]));
    }
    best_ = std::move(found);
  }

  void GoFaster(std::size_t module, const Sums& sums) {
    if (module == fronts_.size()) {
      const double step_s = TimeOf(sink_, sums);
      if (step_s >= limit_s_) return;
      limit_s_ = step_s;
      return Keep(sums, step_s);
    }
    const Front& front = fronts_[module];
    // Options with more ranks come first, since most of them are faster.
    for (std::size_t count = front.Within(ranks_left(sums)); count > 0; --count) {
      RunOption least = front.LeastOf(count);
      least.ranks = front.least_ranks();
      Sums bound = sums;
      bound.Add(least, problem_.chain);
      if (BoundFrom(module + 1, bound) >= limit_s_) return;
      Sums next = sums;
      next.Add(front.At(count - 1), problem_.chain);
      if (BoundFrom(module + 1, next) >= limit_s_) continue;
      chosen_[module] = count - 1;
      GoFaster(module + 1, next);
    }
  }

  void GoSmaller(std::size_t module, const Sums& sums) {
    if (module == fronts_.size()) {
      const double step_s = TimeOf(sink_, sums);
      const int ranks = sink_.own.ranks + sums.ranks;
      if (step_s > limit_s_ || ranks > most_ranks_) return;
      if (best_ && ranks == best_->ranks && step_s >= best_->step_s) return;
      most_ranks_ = ranks;
      return Keep(sums, step_s);
    }
    const Front& front = fronts_[module];
    int others = 0;
    for (std::size_t m = module + 1; m < fronts_.size(); ++m) others += fronts_[m].least_ranks();
    const int most = most_ranks_ - sink_.own.ranks - sums.ranks - others;
    const std::size_t end = front.Within(std::min(ranks_left(sums), most));
    for (std::size_t place = FirstWithin(module, sums, end); place < end; ++place) {
      if (front.At(place).ranks + sums.ranks + sink_.own.ranks + others > most_ranks_) return;
      Sums next = sums;
      next.Add(front.At(place), problem_.chain);
      if (BoundFrom(module + 1, next) > limit_s_) continue;
      chosen_[module] = place;
      GoSmaller(module + 1, next);
    }
  }

  /// The first place up to which the least of all options allows the limit: the bound falls with every
  /// further option.
  std::size_t FirstWithin(std::size_t module, const Sums& sums, std::size_t end) const {
    std::size_t low = 0;
    std::size_t high = end;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      RunOption least = fronts_[module].LeastOf(middle + 1);
      least.ranks = fronts_[module].least_ranks();
      Sums bound = sums;
      bound.Add(least, problem_.chain);
      if (BoundFrom(module + 1, bound) <= limit_s_) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  const ChoiceProblem& problem_;
  const SinkOption& sink_;
  const std::vector<Front>& fronts_;
  std::vector<std::size_t> chosen_;  ///< by module, places in its front
  double limit_s_ = kNever;
  int most_ranks_ = 0;
  std::optional<Choice> best_;
};

/// The options of a group, and which of them count.
struct Group {
  explicit Group(std::vector<std::vector<RunOption>> made) : options(std::move(made)) {
    for (const auto& each : options) fronts.emplace_back(each);
  }
  Group(const Group&) = delete;  // fronts point into its options
  Group& operator=(const Group&) = delete;

  const std::vector<std::vector<RunOption>> options;
  std::vector<Front> fronts;
};

/// A sink, or a set of sinks.
struct Bounded {
  double bound_s = 0.0;  ///< least time of a step
  std::size_t set = 0;
  std::size_t sink = 0;
  bool is_set = false;
  const SinkOption* option = nullptr;  ///< of a sink

  /// Whether it comes after another one.
  friend bool operator<(const Bounded& a, const Bounded& b) {
    return std::tuple(a.bound_s, a.set, !a.is_set, a.sink) >
           std::tuple(b.bound_s, b.set, !b.is_set, b.sink);
  }
};

class Searches {
 public:
  explicit Searches(const ChoiceProblem& problem) : problem_(problem) {
    std::vector<Bounded> sets;
    for (std::size_t set = 0; set < problem.sets_s.size(); ++set) {
      sets.push_back({.bound_s = problem.sets_s[set], .set = set, .is_set = true});
    }
    queue_ = std::priority_queue<Bounded>({}, std::move(sets));
  }

  /// Returns sink `place` of those that fit alone, by the time of their steps alone; null if it takes more
  /// than `limit_s`, or past the last one.
  const Bounded* At(std::size_t place, double limit_s) {
    while (place >= sinks_.size() && !queue_.empty() && queue_.top().bound_s <= limit_s) {
      const Bounded next = queue_.top();
      queue_.pop();
      if (next.is_set) {
        Open(next.set);
      } else {
        sinks_.push_back(next);
      }
    }
    return place < sinks_.size() && sinks_[place].bound_s <= limit_s ? &sinks_[place] : nullptr;
  }

  SinkSearch Of(const SinkOption& sink) {
    const auto found = groups_.find(sink.group);
    const Group& own =
        found != groups_.end()
            ? found->second
            : groups_.try_emplace(sink.group, problem_.options_of(sink.group)).first->second;
    return {problem_, sink, own.fronts};
  }

 private:
  void Open(std::size_t set) {
    const std::vector<SinkOption>& options = sets_[set] = problem_.sinks_of(set);
    for (std::size_t sink = 0; sink < options.size(); ++sink) {
      const SinkOption& option = options[sink];
      if (option.own.ranks > problem_.max_ranks || option.free_bytes < 0.0) continue;
      queue_.push({TimeOf(option, Sums()), set, sink, false, &option});
    }
  }

  const ChoiceProblem& problem_;
  std::map<std::size_t, Group> groups_;
  std::map<std::size_t, std::vector<SinkOption>> sets_;  ///< that were looked at
  std::priority_queue<Bounded> queue_;
  std::deque<Bounded> sinks_;
};

/// A factor of 1 keeps what is as fast but for rounding.
double Within(double best_s, double factor) { return best_s * factor * (1.0 + 1e-12); }

}  // namespace

double StepTime(const ChoiceProblem& problem, const SinkOption& sink,
                std::span<const RunOption* const> options) {
  Sums sums;
  for (const RunOption* option : options) sums.Add(*option, problem.chain);
  return TimeOf(sink, sums);
}

std::vector<Choice> BestChoices(const ChoiceProblem& problem, double within, double equal) {
  Searches searches(problem);
  std::vector<Choice> found;
  double best_s = kNever;
  for (std::size_t place = 0; const Bounded* sink = searches.At(place, Within(best_s, within));
       ++place) {
    SinkSearch search = searches.Of(*sink->option);
    if (search.Bound() > Within(best_s, within)) continue;
    // What is slower than all that is wanted need not be found.
    const double limit_s = best_s < kNever ? Within(best_s, within) * (1.0 + 1e-12) : kNever;
    const auto fastest = search.Fastest(limit_s);
    if (!fastest) continue;
    best_s = std::min(best_s, fastest->step_s);
    const auto smallest = search.Smallest(Within(fastest->step_s, equal), fastest->ranks);
    found.push_back(smallest.value_or(*fastest));
    found.back().set = sink->set;
    found.back().sink = sink->sink;
  }
  std::erase_if(found, [&](const Choice& each) {
    return each.step_s > Within(best_s, std::max(within, equal));
  });
  std::ranges::stable_sort(found, {}, &Choice::step_s);
  return found;
}

Choice FewestRanks(const ChoiceProblem& problem, double equal) {
  Searches searches(problem);
  double best_s = kNever;
  for (std::size_t place = 0; const Bounded* sink = searches.At(place, best_s); ++place) {
    const auto fastest = searches.Of(*sink->option).Fastest(best_s);
    if (fastest) best_s = fastest->step_s;
  }
  if (best_s == kNever) throw std::invalid_argument("no choice fits");
  const double limit_s = Within(best_s, equal);
  std::optional<Choice> best;
  for (std::size_t place = 0; const Bounded* sink = searches.At(place, limit_s); ++place) {
    const int most = best ? best->ranks : problem.max_ranks;
    const auto smallest = searches.Of(*sink->option).Smallest(limit_s, most);
    if (!smallest) continue;
    if (!best || smallest->ranks < best->ranks || smallest->step_s < best->step_s) {
      best = smallest;
      best->set = sink->set;
      best->sink = sink->sink;
    }
  }
  return *best;
}

}  // namespace troupe
