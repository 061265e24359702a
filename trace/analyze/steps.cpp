#include "trace/analyze/steps.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>

namespace troupe {
namespace {

/// The facts about one round in a trace.
struct Seen {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = 0;
  std::int64_t announced_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t stated_step = -1;  ///< TraceMessage::step of its messages
  bool worked = false;
  bool has_training_work = false;  ///< work that evaluations do not have
  bool trains() const { return stated_step > 0 || (stated_step < 0 && has_training_work); }
};

using Rounds = std::map<std::int64_t, Seen>;

Rounds RoundsOf(const RunTrace& trace) {
  Rounds rounds;
  for (const TraceWork& work : trace.work) {
    Seen& seen = rounds[work.pass.round];
    seen.worked = true;
    seen.begin_ns = std::min(seen.begin_ns, work.pass.begin_ns);
    seen.end_ns = std::max(seen.end_ns, work.pass.end_ns);
    // A checkpoint delays the next round, even an evaluation.
    seen.has_training_work = seen.has_training_work || (work.pass.kind != WorkKind::kForward &&
                                                        work.pass.kind != WorkKind::kExchange &&
                                                        !IsForCheckpoint(work.pass.kind));
  }
  for (const TraceMessage& m : trace.messages) {
    if (m.round < 0 || m.step < 0) continue;
    Seen& seen = rounds[m.round];
    seen.stated_step = m.step;
    seen.announced_ns = std::min(seen.announced_ns, m.sent_ns);
  }
  return rounds;
}

/// The step numbers of `rounds`, all of which train, in order. Numbers are consecutive, so one
/// stated number suffices for all.
std::vector<std::int64_t> NumbersOf(const std::vector<const Seen*>& rounds) {
  constexpr std::int64_t kUnknown = -1;
  std::vector<std::int64_t> numbers(rounds.size(), kUnknown);
  std::size_t first_known = rounds.size();
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const bool known = i > first_known;
    // Ignores numbers from damaged files that do not increase, because steps are looked up by
    // number.
    if (rounds[i]->stated_step > (known ? numbers[i - 1] : static_cast<std::int64_t>(i))) {
      numbers[i] = rounds[i]->stated_step;
      first_known = std::min(first_known, i);
    } else if (known) {
      numbers[i] = numbers[i - 1] + 1;
    }
  }
  const bool none = first_known == rounds.size();
  for (std::size_t i = 0; i < first_known; ++i) {
    const auto before = static_cast<std::int64_t>(first_known - i);
    numbers[i] = none ? static_cast<std::int64_t>(i) + 1 : numbers[first_known] - before;
  }
  return numbers;
}

bool ParseNumber(const std::string& text, std::int64_t& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && number >= 1;
}

}  // namespace

Steps::Steps(const TraceIndex& index) {
  const Rounds rounds = RoundsOf(index.trace());
  std::vector<const Seen*> training;
  for (const auto& [round, seen] : rounds) {
    if (seen.trains()) training.push_back(&seen);
  }
  const std::vector<std::int64_t> numbers = NumbersOf(training);
  auto number = numbers.begin();
  for (auto at = rounds.begin(); at != rounds.end(); ++at) {
    const auto& [round, seen] = *at;
    if (!seen.trains()) continue;
    const std::int64_t step = *number++;
    if (!seen.worked) continue;
    std::int64_t begin_ns = std::min(seen.begin_ns, seen.announced_ns);
    if (at != rounds.begin() && std::prev(at)->first == round - 1) {
      begin_ns = std::max(begin_ns, std::prev(at)->second.end_ns);
    }
    all_.push_back({step, round, std::min(begin_ns, seen.end_ns), seen.end_ns});
  }
  // The trace of a run that was killed, or still runs, ends within a step, possibly after the next
  // has begun. Checkpoints do not count: few steps begin with one.
  const auto works = [&](std::size_t i) {
    return std::ranges::count_if(index.WorkIn(all_[i].round),
                                 [&](int w) { return !IsForCheckpoint(index.work(w).pass.kind); });
  };
  while (all_.size() >= 2 && works(all_.size() - 1) < works(all_.size() - 2)) all_.pop_back();
}

std::int64_t Steps::StepOf(std::int64_t round) const {
  const auto at = std::ranges::lower_bound(all_, round, {}, &StepSpan::round);
  return at == all_.end() || at->round != round ? -1 : at->step;
}

const StepSpan& Steps::Of(std::int64_t step) const {
  if (all_.empty()) throw std::out_of_range("the trace has no training step");
  const auto at = std::ranges::lower_bound(all_, step, {}, &StepSpan::step);
  if (at != all_.end() && at->step == step) return *at;
  throw std::out_of_range("step " + std::to_string(step) + " is not in the trace, which has " +
                          Text());
}

std::string Steps::Text() const {
  if (all_.empty()) return "no training step";
  const std::string first = std::to_string(all_.front().step);
  const std::string last = std::to_string(all_.back().step);
  return first == last ? "step " + first : "steps " + first + "-" + last;
}

std::vector<StepSpan> Steps::In(const std::optional<StepRange>& range) const {
  if (!range) return all_;
  std::vector<StepSpan> spans;
  Of(range->last);
  for (std::int64_t step = range->first; step <= range->last; ++step) spans.push_back(Of(step));
  return spans;
}

StepRange ParseSteps(const std::string& text) {
  const std::size_t dash = text.find('-');
  StepRange range;
  const bool parsed = dash == std::string::npos
                          ? ParseNumber(text, range.first)
                          : ParseNumber(text.substr(0, dash), range.first) &&
                                ParseNumber(text.substr(dash + 1), range.last);
  if (dash == std::string::npos) range.last = range.first;
  if (!parsed || range.last < range.first) {
    throw std::invalid_argument(
        "expected a step or a range of steps, counted from 1, like 12 or 10-12; "
        "got \"" +
        text + "\"");
  }
  return range;
}

}  // namespace troupe
