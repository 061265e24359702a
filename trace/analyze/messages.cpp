#include "trace/analyze/messages.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <stdexcept>

namespace troupe {
namespace {

/// "a, b, c and 12 more".
std::string Some(const std::set<std::string>& names) {
  constexpr std::size_t kMost = 12;
  if (names.empty()) return "none";
  const auto end =
      std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min(names.size(), kMost)));
  return Listed(std::vector<std::string>(names.begin(), end)) +
         (names.size() > kMost ? " and " + std::to_string(names.size() - kMost) + " more" : "");
}

/// Throws std::invalid_argument if the trace has no message of this type.
void CheckType(const RunTrace& trace, const std::string& type) {
  if (std::ranges::find(trace.types, type) != trace.types.end()) return;
  throw std::invalid_argument("no message of type \"" + type + "\" is in the trace, which has " +
                              Some({trace.types.begin(), trace.types.end()}));
}

Cell Time(std::int64_t ns) { return ns < 0 ? Cell::Null() : Cell::Number(Millis(ns)); }

/// From `from_ns` to `until_ns`, in microseconds; null if either is unknown.
Cell Between(std::int64_t from_ns, std::int64_t until_ns) {
  if (from_ns < 0 || until_ns < 0) return Cell::Null();
  return Cell::Number(Fixed(static_cast<double>(until_ns - from_ns) / 1e3, 1));
}

Cell Number(std::int64_t value) { return value < 0 ? Cell::Null() : Cell(value); }

std::vector<Cell> RowOf(const TraceIndex& index, const Steps& steps, int i) {
  const TraceMessage& m = index.message(i);
  const TraceLink* const link = index.LinkOf(i);
  return {Cell::Number(std::to_string(m.id)),
          m.cause < 0 ? Cell::Null() : Cell::Number(std::to_string(index.message(m.cause).id)),
          index.TypeName(i),
          index.ActorName(m.sender),
          index.ActorName(m.receiver),
          Number(steps.StepOf(index.RoundOf(i))),
          Number(index.places().OfMessage(index, i).number),
          link == nullptr ? Cell::Null() : Cell(link->name),
          m.bytes,
          Number(m.credits),
          Time(m.sent_ns),
          Between(m.sent_ns, m.arrived_ns),
          Between(m.arrived_ns, m.begin_ns),
          Between(m.begin_ns, m.end_ns)};
}

}  // namespace

std::vector<int> ActorsNamed(const RunTrace& trace, const std::string& part) {
  std::vector<int> actors;
  std::set<std::string> names;
  for (std::size_t a = 0; a < trace.actors.size(); ++a) {
    names.insert(trace.actors[a].name);
    if (trace.actors[a].name.find(part) != std::string::npos) {
      actors.push_back(static_cast<int>(a));
    }
  }
  if (actors.empty()) {
    throw std::invalid_argument("no actor is called \"" + part + "\"; there are " + Some(names));
  }
  return actors;
}

FoundMessages FindMessages(const TraceIndex& index, const Steps& steps,
                           const MessageFilter& filter) {
  const RunTrace& trace = index.trace();
  if (!filter.type.empty()) CheckType(trace, filter.type);
  std::set<int> actors;
  if (!filter.actor.empty()) {
    const std::vector<int> named = ActorsNamed(trace, filter.actor);
    actors.insert(named.begin(), named.end());
  }
  const std::int64_t round = filter.step ? steps.Of(*filter.step).round : -1;
  FoundMessages result{{{"id", "cause", "type", "from", "to", "step", "microbatch", "edge", "bytes",
                         "credits", "sent_ms", "transit_us", "queued_us", "handled_us"},
                        {}},
                       0};
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    if (filter.step && index.RoundOf(i) != round) continue;
    if (!filter.type.empty() && index.TypeName(i) != filter.type) continue;
    if (!actors.empty() && !actors.contains(m.sender) && !actors.contains(m.receiver)) continue;
    ++result.found;
    if (filter.limit == 0 || result.found <= filter.limit) {
      result.table.rows.push_back(RowOf(index, steps, i));
    }
  }
  return result;
}

}  // namespace troupe
