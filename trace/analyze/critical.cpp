#include "trace/analyze/critical.hpp"

#include <array>

#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

/// By Share.
constexpr std::array kShares = {"compute",  "boundary",   "queueing",
                                "messages", "checkpoint", "unknown"};

bool IsBoundaryActor(const ActorId& actor) {
  return actor.kind == ActorKind::kLeader || actor.kind == ActorKind::kPhase;
}

/// Empty for a run of one process.
std::string TripsText(const CriticalPath& path, const TraceIndex& index) {
  if (index.trace().processes.size() < 2) return "";
  return "; " + Counted(TripsOf(path, index), "trip") + " between processes";
}

std::string ShareLine(const CriticalPath& path, const TraceIndex& index) {
  std::array<std::int64_t, kShares.size()> totals{};
  std::int64_t without_ns = 0;
  for (const Segment& segment : path.segments) {
    totals[static_cast<std::size_t>(ShareOf(index, segment))] += segment.length_ns();
    without_ns += WithoutCore(index, segment);
  }
  std::string line;
  for (std::size_t s = 0; s < kShares.size(); ++s) {
    const auto share = static_cast<Share>(s);
    const std::int64_t ns = totals[s];
    if (ns == 0 && (share == Share::kCheckpoint || share == Share::kUnknown)) continue;
    line += (line.empty() ? "" : ", ") + std::string(kShares[s]) + " " + Millis(ns) + " ms (" +
            PercentOf(ns, path.span.length_ns());
    if (share == Share::kCompute && without_ns > ns / 100) {
      line += ", " + Millis(without_ns) + " ms of it without a core";
    }
    line += ')';
  }
  return line;
}

}  // namespace

const char* ToString(Share share) { return kShares.at(static_cast<std::size_t>(share)); }

CriticalPath CriticalPathOf(const TraceIndex& index, const StepSpan& span) {
  CriticalPath path{span, {}};
  const int last = index.LastWorkIn(span.round);
  if (last < 0) return path;
  const TraceWork& work = index.work(last);
  if (work.message < 0) {
    path.segments = {{SegmentKind::kUnknown, -1, -1, -1, span.begin_ns, work.pass.begin_ns},
                     {SegmentKind::kHandler, -1, -1, last, work.pass.begin_ns, span.end_ns}};
  } else {
    path.segments = ChainTo(index, work.message, span.begin_ns, span.end_ns);
  }
  return path;
}

Share ShareOf(const TraceIndex& index, const Segment& segment) {
  if (segment.kind == SegmentKind::kUnknown) return Share::kUnknown;
  if (segment.kind == SegmentKind::kQueue) return Share::kQueueing;
  if (IsOfCheckpoint(index, segment)) return Share::kCheckpoint;
  if (segment.work >= 0) return Share::kCompute;
  const bool at_boundary = IsBoundaryActor(index.IdOf(segment.actor)) ||
                           (segment.kind == SegmentKind::kTransit &&
                            IsBoundaryActor(index.IdOf(index.message(segment.message).sender)));
  return at_boundary ? Share::kBoundary : Share::kMessages;
}

std::string BucketOf(const TraceIndex& index, const Segment& segment) {
  const Share share = ShareOf(index, segment);
  const std::string name = ToString(share);
  if (share == Share::kCompute) {
    const PassRecord& pass = index.work(segment.work).pass;
    return name + " " + ToString(pass.kind) + " of " + index.StageName(pass.stage);
  }
  if (share != Share::kBoundary) return name;
  const bool here = IsBoundaryActor(index.IdOf(segment.actor));
  return name + " " + index.IdOf(here ? segment.actor : index.message(segment.message).sender).of;
}

int TripsOf(const CriticalPath& path, const TraceIndex& index) {
  int trips = 0;
  for (std::size_t i = 1; i < path.segments.size(); ++i) {
    const int before = path.segments[i - 1].message;
    const int message = path.segments[i].message;
    if (message < 0 || message == before) continue;
    // A message that waited for a device follows that device's work; its own transit did not
    // matter.
    if (index.message(message).cause == before) trips += index.TripsOf(message);
  }
  return trips;
}

std::string Format(const CriticalPath& path, const TraceIndex& index, std::int64_t fold_ns) {
  Table table{{"at ms", "took ms", "share", "actor", "activity"}, {}};
  const Usual usual(index);
  const auto is_short = [&](const Segment& segment) { return segment.length_ns() < fold_ns; };
  for (const auto row : Folded(path.segments, is_short)) {
    const Segment& segment = row.front();
    const bool single = row.size() == 1;
    std::string activity = Describe(index, row);
    if (single && segment.kind == SegmentKind::kHandler) {
      const std::int64_t median = usual.InStep(segment);
      if (segment.length_ns() > median + median / 2 && segment.length_ns() > median + 1'000'000) {
        activity += ", usual " + usual.TextInStep(segment);
      }
      const std::int64_t without_ns = WithoutCore(index, segment);
      if (without_ns > segment.length_ns() / 20) {
        activity += ", " + Duration(without_ns) + " without a core";
      }
    }
    table.rows.push_back({Cell::Number(Millis(segment.begin_ns - path.span.begin_ns)),
                          Cell::Number(Millis(row.back().end_ns - segment.begin_ns)),
                          single ? ToString(ShareOf(index, segment)) : "",
                          single ? index.ActorName(segment.actor) : "...", activity});
  }
  return "critical path of step " + std::to_string(path.span.step) + ": " +
         Millis(path.span.length_ns()) + " ms = " + ShareLine(path, index) +
         TripsText(path, index) + "\n\n" + ToText(table);
}

}  // namespace troupe
