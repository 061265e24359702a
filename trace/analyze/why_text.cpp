#include <algorithm>

#include "trace/analyze/table.hpp"
#include "trace/analyze/why.hpp"
#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

std::string Where(const TraceIndex& index, int actor) {
  const RunTrace& trace = index.trace();
  if (actor < 0 || trace.processes.empty()) return "";
  const auto process =
      static_cast<std::size_t>(trace.actors[static_cast<std::size_t>(actor)].process);
  if (process >= trace.processes.size()) return "";
  return " (" + trace.processes[process].name + ", pid " +
         std::to_string(trace.processes[process].pid) + ")";
}

std::string Doing(const TraceIndex& index, const Segment& segment) {
  const std::string message = DescribeHandling(index, segment.message);
  switch (segment.kind) {
    case SegmentKind::kHandler:
      return message;
    case SegmentKind::kQueue:
      return message + " waited in its mailbox";
    case SegmentKind::kTransit:
      return DescribeEdge(index, segment.message) + " in transit from " +
             index.ActorName(index.message(segment.message).sender);
    case SegmentKind::kUnknown:
      return "its activity before it sent " + DescribeEdge(index, segment.message) +
             " is not in the trace";
  }
  return "?";
}

std::string ChainTable(const Why& why, const TraceIndex& index, const Usual& usual) {
  Table table{{"at ms", "took", "usual", "actor", "activity", ""}, {}};
  const std::int64_t short_ns = (why.wait.end_ns - why.wait.begin_ns) / 100;
  for (std::size_t i = 0; i < why.chain.size();) {
    const Segment& segment = why.chain[i];
    std::size_t end = i + 1;
    const auto is_short = [&](std::size_t at) {
      return why.chain[at].length_ns() < short_ns && static_cast<int>(at) != why.root;
    };
    while (is_short(i) && end < why.chain.size() && is_short(end)) ++end;
    const Cell at = Cell::Number(Millis(segment.begin_ns - why.wait.begin_ns));
    const Cell took = Cell::Number(Duration(why.chain[end - 1].end_ns - segment.begin_ns));
    if (end - i > 1) {
      table.rows.push_back({at, took, Cell::Null(), "...",
                            std::to_string(end - i) + " short steps, up to " +
                                index.ActorName(why.chain[end - 1].actor),
                            ""});
    } else {
      table.rows.push_back({at, took,
                            segment.kind == SegmentKind::kHandler
                                ? Cell::Number(usual.TextInStep(segment))
                                : Cell::Null(),
                            index.ActorName(segment.actor), Doing(index, segment),
                            static_cast<int>(i) == why.root ? "<- root" : ""});
    }
    i = end;
  }
  return ToText(table);
}

std::string RootLine(const Why& why, const TraceIndex& index, const Usual& usual) {
  const Segment& root = why.chain[static_cast<std::size_t>(why.root)];
  std::string text = "root: " + index.ActorName(root.actor) + Where(index, root.actor) + ": ";
  if (root.kind == SegmentKind::kQueue && why.busy_with >= 0) {
    const TraceMessage& m = index.message(why.busy_with);
    const Segment busy{SegmentKind::kHandler,       root.actor, why.busy_with,
                       index.WorkOf(why.busy_with), m.begin_ns, m.end_ns};
    text += "was busy with " + DescribeHandling(index, why.busy_with);
    if (m.end_ns >= 0) text += " for " + Duration(busy.length_ns());
    return text + ", usual " + Duration(usual.Of(busy));
  }
  // The whole duration, although the wait may have begun later.
  std::int64_t took_ns = root.length_ns();
  if (root.kind == SegmentKind::kHandler) {
    const TraceMessage& m = index.message(root.message);
    took_ns = (m.end_ns < 0 ? root.end_ns : m.end_ns) - m.begin_ns;
  }
  text += Doing(index, root) + " took " + Duration(took_ns);
  if (root.kind != SegmentKind::kUnknown) text += ", usual " + usual.TextInStep(root);
  const std::int64_t without_ns = root.work < 0 ? 0 : index.work(root.work).cores.without_core_ns;
  return text + (without_ns > took_ns / 20 ? ", " + Duration(without_ns) + " of it without a core"
                                           : std::string());
}

/// A line if missing cores contributed to the wait; else empty.
std::string CoresLine(const Why& why) {
  const std::int64_t wait_ns = why.wait.end_ns - why.wait.begin_ns;
  if (why.without_core_ns <= wait_ns / 10) return "";
  return "for " + Duration(why.without_core_ns) + " of the " + Duration(wait_ns) +
         " the work in this chain was runnable without a core: there are more threads than cores, "
         "in any layout\n";
}

std::string EffectLine(const Why& why, const TraceIndex& index) {
  if (why.blocked.empty()) return "";
  std::string text = "effect: " + std::to_string(why.blocked.size()) +
                     (why.blocked.size() == 1 ? " actor" : " actors") + " waited for it: ";
  for (std::size_t i = 0; i < why.blocked.size(); ++i) {
    if (i == 6) {
      text += " and " + std::to_string(why.blocked.size() - i) + " more";
      break;
    }
    text += (i == 0 ? "" : ", ") + index.ActorName(why.blocked[i]);
  }
  return text + '\n';
}

}  // namespace

std::string Format(const Why& why, const TraceIndex& index, const Usual& usual) {
  if (why.wait.message < 0) {
    return "step " + std::to_string(why.step) + ": no wait in the trace\n";
  }
  std::string actor = index.ActorName(why.wait.actor);
  const int work = index.WorkOf(why.wait.message);
  int message = why.wait.message;
  if (work >= 0) {
    actor = index.StageName(index.work(work).pass.stage) + " dp" +
            std::to_string(index.work(work).pass.dp) + ", " + actor;
    const int start = StartOf(index, index.work(work));
    if (start >= 0) message = start;
  }
  std::string text = actor + ", waited " + Duration(why.wait.end_ns - why.wait.begin_ns) +
                     " in step " + std::to_string(why.step) + " before " +
                     DescribeHandling(index, why.wait.message) + ", for " +
                     DescribeWait(index, message) + " (" + DescribeEdge(index, message) + " from " +
                     index.ActorName(index.message(message).sender) + ")\n";
  if (why.whole_step) {
    text = "step " + std::to_string(why.step) + " took " +
           Duration(why.wait.end_ns - why.wait.begin_ns) + "; its critical path:\n";
  }
  if (why.root < 0) return text;
  text += '\n' + ChainTable(why, index, usual) + '\n' + RootLine(why, index, usual) + '\n';
  if (why.as_usual) {
    text += "nothing in this chain took longer than usual by a fifth of it (" +
            Duration((why.wait.end_ns - why.wait.begin_ns) / 5) +
            "): the schedule has this wait, and the root is its longest piece\n";
  }
  return text + CoresLine(why) + EffectLine(why, index);
}

}  // namespace troupe
