#include "trace/analyze/stall.hpp"

#include <algorithm>
#include <map>

#include "trace/analyze/table.hpp"
#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

constexpr std::size_t kShown = 5;

std::string OpenText(const TraceIndex& index, const OpenHandler& open) {
  return index.ActorName(index.message(open.message).receiver) + " runs " +
         DescribeHandling(index, open.message) + ", for " + Duration(open.for_ns) +
         " at least, usual " + Duration(open.usual_ns) +
         (open.waiting > 0 ? "; " + std::to_string(open.waiting) + " messages wait for it" : "");
}

std::string LostText(const TraceIndex& index, int message) {
  const TraceMessage& m = index.message(message);
  return DescribeEdge(index, message) + InParentheses(index.places().OfMessage(index, message)) +
         " from " + index.ActorName(m.sender) + " to " + index.ActorName(m.receiver) +
         ", which did not handle it: the message is lost, or the receiver is gone";
}

Segment HandlerOf(const TraceIndex& index, int message, std::int64_t end_ns) {
  const TraceMessage& m = index.message(message);
  return {SegmentKind::kHandler, m.receiver, message, index.WorkOf(message), m.begin_ns, end_ns};
}

/// An unfinished handler of a device has no work record yet: uses the usual time of other work of
/// the same type and unit.
std::int64_t UsualOf(const TraceIndex& index, const Usual& usual, int message) {
  return usual.Of(HandlerOf(index, message, index.end_ns()));
}

}  // namespace

Stall FindStall(const TraceIndex& index, const Usual& usual) {
  std::map<int, OpenHandler> open;          // by actor
  std::map<int, std::int64_t> taken_until;  // by actor: arrival of the last message it handled
  std::int64_t last_round = -1;
  const auto& messages = index.trace().messages;
  for (int i = 0; static_cast<std::size_t>(i) < messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    last_round = std::max(last_round, index.RoundOf(i));
    if (m.begin_ns >= 0) {
      auto& until = taken_until[m.receiver];
      until = std::max(until, m.arrived_ns);
    }
    if (m.begin_ns >= 0 && m.end_ns < 0 && m.receiver >= 0) {
      open[m.receiver] = {i, index.end_ns() - m.begin_ns, UsualOf(index, usual, i), 0};
    }
  }
  Stall stall;
  std::ptrdiff_t num_overtaken = 0;
  for (int i = 0; static_cast<std::size_t>(i) < messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    if (m.begin_ns >= 0 || m.receiver < 0) continue;
    const auto handler = open.find(m.receiver);
    const auto until = taken_until.find(m.receiver);
    if (until != taken_until.end() && m.arrived_ns < until->second) {
      stall.lost.insert(stall.lost.begin() + num_overtaken++, i);
    } else if (handler != open.end()) {
      ++handler->second.waiting;
    } else if (index.RoundOf(i) == last_round) {
      stall.lost.push_back(i);
    }
  }
  for (const auto& [actor, handler] : open) stall.open.push_back(handler);
  std::stable_sort(stall.open.begin(), stall.open.end(), [](const auto& a, const auto& b) {
    return a.for_ns - a.usual_ns > b.for_ns - b.usual_ns;
  });
  return stall;
}

std::string Format(const Stall& stall, const TraceIndex& index) {
  std::string text;
  const auto add = [&](std::size_t i, std::size_t of, const std::string& line) {
    if (i < kShown) text += line + '\n';
    if (i == kShown) text += "... and " + std::to_string(of - i) + " more\n";
  };
  for (std::size_t i = 0; i < stall.open.size(); ++i) {
    add(i, stall.open.size(), OpenText(index, stall.open[i]));
  }
  for (std::size_t i = 0; i < stall.lost.size(); ++i) {
    add(i, stall.lost.size(), LostText(index, stall.lost[i]));
  }
  return text;
}

std::string LastActivity(const TraceIndex& index, const Usual& usual, int actor) {
  const auto handled = index.HandledBy(actor);
  std::string text;
  if (handled.empty()) {
    text = index.ActorName(actor) + " has handled no message in this trace\n";
  } else {
    const int last = handled.back();
    const TraceMessage& m = index.message(last);
    const OpenHandler open{last, index.end_ns() - m.begin_ns, UsualOf(index, usual, last), 0};
    text = m.end_ns < 0
               ? OpenText(index, open) + '\n'
               : index.ActorName(actor) + " last handled " + DescribeHandling(index, last) +
                     " from " + index.ActorName(m.sender) + ", and ended " +
                     Duration(index.end_ns() - m.end_ns) + " before the trace ends\n";
  }
  std::size_t unhandled = 0;
  for (int i = 0; static_cast<std::size_t>(i) < index.trace().messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    if (m.receiver != actor || m.begin_ns >= 0) continue;
    if (unhandled++ < kShown) {
      text += "  in its mailbox: " + DescribeHandling(index, i) + " from " +
              index.ActorName(m.sender) + '\n';
    }
  }
  if (unhandled > kShown) text += "  and " + std::to_string(unhandled - kShown) + " more\n";
  return text;
}

}  // namespace troupe
