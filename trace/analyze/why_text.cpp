#include <algorithm>
#include <span>

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

std::string ChainTable(const Why& why, const TraceIndex& index, const Usual& usual) {
  Table table{{"at ms", "took", "usual", "actor", "activity", ""}, {}};
  const Segment* const root = &why.chain[static_cast<std::size_t>(why.root)];
  const auto is_short = [&](const Segment& segment) {
    return segment.length_ns() < why.wait.length_ns() / 100 && &segment != root;
  };
  for (const auto row : Folded(why.chain, is_short)) {
    const Segment& segment = row.front();
    const bool single = row.size() == 1;
    table.rows.push_back({Cell::Number(Millis(segment.begin_ns - why.wait.begin_ns)),
                          Cell::Number(Duration(row.back().end_ns - segment.begin_ns)),
                          single && segment.kind == SegmentKind::kHandler
                              ? Cell::Number(usual.TextInStep(segment))
                              : Cell::Null(),
                          single ? index.ActorName(segment.actor) : "...", Describe(index, row),
                          &segment == root ? "<- root" : ""});
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
  text += Describe(index, root) + (root.kind == SegmentKind::kQueue ? " for " : " took ") +
          Duration(took_ns);
  if (root.kind != SegmentKind::kUnknown) text += ", usual " + usual.TextInStep(root);
  const std::int64_t without_ns = root.work < 0 ? 0 : index.work(root.work).cores.without_core_ns;
  return text + (without_ns > took_ns / 20 ? ", " + Duration(without_ns) + " of it without a core"
                                           : std::string());
}

/// A line if missing cores contributed to the wait; else empty.
std::string CoresLine(const Why& why) {
  const std::int64_t wait_ns = why.wait.length_ns();
  if (why.without_core_ns <= wait_ns / 10) return "";
  return "for " + Duration(why.without_core_ns) + " of the " + Duration(wait_ns) +
         " the work in this chain was runnable without a core: there are more threads than cores, "
         "in any layout\n";
}

std::string EffectLine(const Why& why, const TraceIndex& index) {
  if (why.blocked.empty()) return "";
  std::string text = "effect: " + Counted(std::ssize(why.blocked), "actor") + " waited for it: ";
  const auto shown = std::span(why.blocked).first(std::min<std::size_t>(why.blocked.size(), 6));
  text += Listed(shown, ", ", [&](int actor) { return index.ActorName(actor); });
  if (shown.size() < why.blocked.size()) {
    text += " and " + std::to_string(why.blocked.size() - shown.size()) + " more";
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
  std::string text = actor + ", waited " + Duration(why.wait.length_ns()) + " in step " +
                     std::to_string(why.step) + " before " +
                     DescribeHandling(index, why.wait.message) + ", for " +
                     DescribeWait(index, message) + " (" + DescribeEdge(index, message) + " from " +
                     index.ActorName(index.message(message).sender) + ")\n";
  if (why.whole_step) {
    text = "step " + std::to_string(why.step) + " took " + Duration(why.wait.length_ns()) +
           "; its critical path:\n";
  }
  if (why.root < 0) return text;
  text += '\n' + ChainTable(why, index, usual) + '\n' + RootLine(why, index, usual) + '\n';
  if (why.as_usual) {
    text += "nothing in this chain took longer than usual by a fifth of it (" +
            Duration(why.wait.length_ns() / 5) +
            "): the schedule has this wait, and the root is its longest piece\n";
  }
  return text + CoresLine(why) + EffectLine(why, index);
}

}  // namespace troupe
