#include "trace/analyze/steps.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>

namespace troupe {
namespace {

struct Seen {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = 0;
  std::int64_t announced_ns = std::numeric_limits<std::int64_t>::max();
  bool trains = false;
};

bool ParseNumber(const std::string& text, std::int64_t& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && number >= 1;
}

}  // namespace

Steps::Steps(const TraceIndex& index, std::int64_t first_step) {
  std::map<std::int64_t, Seen> rounds;
  for (const TraceWork& work : index.trace().work) {
    Seen& seen = rounds[work.pass.round];
    seen.begin_ns = std::min(seen.begin_ns, work.pass.begin_ns);
    seen.end_ns = std::max(seen.end_ns, work.pass.end_ns);
    seen.trains = seen.trains ||
                  (work.pass.kind != WorkKind::kForward && work.pass.kind != WorkKind::kExchange);
  }
  for (std::size_t i = 0; i < index.trace().messages.size(); ++i) {
    const TraceMessage& m = index.trace().messages[i];
    if (m.round < 0 || index.TypeName(static_cast<int>(i)) != "RoundBegin") continue;
    const auto round = rounds.find(m.round);
    if (round == rounds.end()) continue;
    round->second.announced_ns = std::min(round->second.announced_ns, m.sent_ns);
  }
  for (auto at = rounds.begin(); at != rounds.end(); ++at) {
    const auto& [round, seen] = *at;
    if (!seen.trains) continue;
    const std::int64_t step = first_step + static_cast<std::int64_t>(all_.size());
    std::int64_t begin_ns = std::min(seen.begin_ns, seen.announced_ns);
    if (at != rounds.begin() && std::prev(at)->first == round - 1) {
      begin_ns = std::max(begin_ns, std::prev(at)->second.end_ns);
    }
    all_.push_back({step, round, std::min(begin_ns, seen.end_ns), seen.end_ns});
  }
  // A run that was killed, or still runs, ends in the middle of a step.
  if (all_.size() < 2) return;
  const std::size_t last = index.WorkIn(all_.back().round).size();
  if (last < index.WorkIn(all_[all_.size() - 2].round).size()) all_.pop_back();
}

std::int64_t Steps::StepOf(std::int64_t round) const {
  const auto at = std::lower_bound(
      all_.begin(), all_.end(), round,
      [](const StepSpan& span, std::int64_t wanted) { return span.round < wanted; });
  return at == all_.end() || at->round != round ? -1 : at->step;
}

const StepSpan& Steps::Of(std::int64_t step) const {
  if (all_.empty()) throw std::out_of_range("there is no training step in the trace");
  const std::int64_t first = all_.front().step;
  const std::int64_t last = all_.back().step;
  if (step < first || step > last) {
    throw std::out_of_range("step " + std::to_string(step) + " is not in the trace, which has " +
                            (first == last ? "step " : "steps ") + std::to_string(first) +
                            (first == last ? "" : "-" + std::to_string(last)));
  }
  return all_[static_cast<std::size_t>(step - first)];
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
        "expected a step or a range of steps from 1 on, as 12 or 10-12; "
        "got \"" +
        text + "\"");
  }
  return range;
}

}  // namespace troupe
