#include "trace/analyze/chain.hpp"

#include <algorithm>
#include <set>

#include "trace/analyze/median.hpp"
#include "trace/analyze/table.hpp"
#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

/// Collects segments backwards, clipped to the requested span.
class Walk {
 public:
  Walk(std::int64_t from_ns, std::int64_t until_ns) : from_ns_(from_ns), upper_ns_(until_ns) {}

  bool done() const { return upper_ns_ <= from_ns_; }

  /// Adds a segment from `begin_ns` to the current position, and moves there.
  void Add(Segment piece, std::int64_t begin_ns) {
    piece.begin_ns = std::max(begin_ns, from_ns_);
    piece.end_ns = upper_ns_;
    if (piece.length_ns() <= 0) return;
    upper_ns_ = piece.begin_ns;
    pieces_.push_back(piece);
  }

  std::vector<Segment> Take() {
    std::reverse(pieces_.begin(), pieces_.end());
    return std::move(pieces_);
  }

 private:
  std::int64_t from_ns_;
  std::int64_t upper_ns_;
  std::vector<Segment> pieces_;
};

}  // namespace

std::vector<Segment> ChainTo(const TraceIndex& index, int message, std::int64_t from_ns,
                             std::int64_t until_ns) {
  Walk walk(from_ns, until_ns);
  // Badly aligned clocks could lead in circles.
  std::size_t left = 2 * index.trace().messages.size() + 2;
  for (int at = message; !walk.done() && left > 0; --left) {
    const TraceMessage& m = index.message(at);
    const Segment here{SegmentKind::kHandler, m.receiver, at, index.WorkOf(at)};
    if (m.begin_ns >= 0) walk.Add(here, m.begin_ns);
    const int before = index.Previous(at);
    Segment queue = here;
    queue.kind = SegmentKind::kQueue;
    queue.work = -1;
    if (before >= 0 && index.WorkOf(before) >= 0 && index.message(before).end_ns > m.arrived_ns) {
      walk.Add(queue, index.message(before).end_ns);
      at = before;
      continue;
    }
    walk.Add(queue, m.arrived_ns);
    Segment transit = queue;
    transit.kind = SegmentKind::kTransit;
    walk.Add(transit, m.sent_ns);
    if (m.cause < 0 || index.message(m.cause).begin_ns < 0) {
      walk.Add({SegmentKind::kUnknown, m.sender, at}, from_ns);
      break;
    }
    if (IsOfMachine(m.role)) {
      walk.Add({SegmentKind::kElsewhere, m.receiver, at}, index.message(m.cause).end_ns);
    }
    at = m.cause;
  }
  return walk.Take();
}

bool IsOfCheckpoint(const TraceIndex& index, const Segment& segment) {
  if (segment.kind != SegmentKind::kHandler) return false;
  if (segment.work >= 0) return IsForCheckpoint(index.work(segment.work).pass.kind);
  return segment.message >= 0 && index.message(segment.message).role == MessageRole::kCheckpoint;
}

std::vector<std::span<const Segment>> Folded(std::span<const Segment> chain,
                                             const std::function<bool(const Segment&)>& is_short) {
  std::vector<std::span<const Segment>> rows;
  for (std::size_t i = 0; i < chain.size(); i += rows.back().size()) {
    std::size_t end = i + 1;
    while (is_short(chain[i]) && end < chain.size() && is_short(chain[end])) ++end;
    rows.push_back(chain.subspan(i, end - i));
  }
  return rows;
}

std::string Describe(const TraceIndex& index, std::span<const Segment> row) {
  if (row.size() > 1) {
    return std::to_string(row.size()) + " short steps, up to " + index.ActorName(row.back().actor);
  }
  return Describe(index, row.front());
}

std::string Describe(const TraceIndex& index, const Segment& segment) {
  const int message = segment.message;
  switch (segment.kind) {
    case SegmentKind::kHandler:
      return segment.work >= 0 ? DescribeWork(index, segment.work)
                               : DescribeHandling(index, message);
    case SegmentKind::kQueue:
      return DescribeHandling(index, message) + " waited in its mailbox";
    case SegmentKind::kTransit:
      return DescribeEdge(index, message) + " in transit from " +
             index.ActorName(index.message(message).sender);
    case SegmentKind::kElsewhere:
      return DescribeSample(index, message);
    case SegmentKind::kUnknown:
      break;
  }
  return message < 0 ? "earlier events are not in the trace"
                     : "its activity before it sent " + DescribeEdge(index, message) +
                           " is not in the trace";
}

std::int64_t WithoutCore(const TraceIndex& index, const Segment& segment) {
  if (segment.work < 0) return 0;
  const TraceWork& work = index.work(segment.work);
  return PartOfTime(work.cores.without_core_ns, work.pass, segment.begin_ns, segment.end_ns);
}

Usual::Usual(const TraceIndex& index) : index_(&index) {
  std::map<WorkKey, std::vector<std::int64_t>> work;
  std::map<HandlingKey, std::vector<std::int64_t>> handling;
  std::map<TransitKey, std::vector<std::int64_t>> transit;
  std::map<HandlingKey, std::vector<std::int64_t>> elsewhere;
  std::set<std::int64_t> rounds;
  std::set<std::int64_t> with_checkpoint;
  for (const TraceWork& one : index.trace().work) {
    work[KeyOf(one.pass)].push_back(one.pass.end_ns - one.pass.begin_ns);
    (IsForCheckpoint(one.pass.kind) ? with_checkpoint : rounds).insert(one.pass.round);
  }
  most_steps_have_checkpoints_ = 2 * with_checkpoint.size() > rounds.size();
  for (int i = 0; At(i) < index.trace().messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    if (m.begin_ns < 0) continue;
    transit[TransitKeyOf(i)].push_back(m.arrived_ns - m.sent_ns);
    if (m.end_ns >= 0) handling[HandlingKeyOf(i)].push_back(m.end_ns - m.begin_ns);
    if (!IsOfMachine(m.role) || m.cause < 0) continue;
    elsewhere[HandlingKeyOf(i)].push_back(m.sent_ns - index.message(m.cause).end_ns);
  }
  work_ = Medians(std::move(work));
  handling_ = Medians(std::move(handling));
  transit_ = Medians(std::move(transit));
  elsewhere_ = Medians(std::move(elsewhere));
}

std::int64_t Usual::Of(const Segment& segment) const {
  const auto look = [](const auto& medians, const auto& key) {
    const auto found = medians.find(key);
    return found == medians.end() ? 0 : found->second;
  };
  if (segment.kind == SegmentKind::kTransit) return look(transit_, TransitKeyOf(segment.message));
  if (segment.kind == SegmentKind::kElsewhere) {
    return look(elsewhere_, HandlingKeyOf(segment.message));
  }
  if (segment.kind != SegmentKind::kHandler) return 0;
  return segment.work >= 0 ? look(work_, KeyOf(index_->work(segment.work).pass))
                           : look(handling_, HandlingKeyOf(segment.message));
}

bool Usual::IsRare(const Segment& segment) const {
  return !most_steps_have_checkpoints_ && IsOfCheckpoint(*index_, segment);
}

std::int64_t Usual::InStep(const Segment& segment) const {
  return IsRare(segment) ? 0 : Of(segment);
}

std::string Usual::TextInStep(const Segment& segment) const {
  return IsRare(segment) ? "none" : Duration(Of(segment));
}

}  // namespace troupe
