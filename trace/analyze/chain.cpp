#include "trace/analyze/chain.hpp"

#include <algorithm>
#include <set>

#include "trace/analyze/median.hpp"
#include "trace/analyze/table.hpp"

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

std::vector<std::int64_t> Medians(std::vector<std::vector<std::int64_t>> all) {
  std::vector<std::int64_t> medians;
  medians.reserve(all.size());
  for (auto& values : all) medians.push_back(Median(std::move(values)));
  return medians;
}

void Put(std::vector<std::vector<std::int64_t>>& all, std::size_t key, std::int64_t value) {
  if (key >= all.size()) all.resize(key + 1);
  all[key].push_back(value);
}

std::int64_t Look(const std::vector<std::int64_t>& medians, std::size_t key) {
  return key < medians.size() ? medians[key] : 0;
}

constexpr std::size_t kWorkKinds = 16;  // an upper bound

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
    at = m.cause;
  }
  return walk.Take();
}

bool IsOfCheckpoint(const TraceIndex& index, const Segment& segment) {
  if (segment.kind != SegmentKind::kHandler) return false;
  if (segment.work >= 0) return index.work(segment.work).pass.kind == WorkKind::kCheckpoint;
  return segment.message >= 0 && index.message(segment.message).role == MessageRole::kCheckpoint;
}

std::int64_t WithoutCore(const TraceIndex& index, const Segment& segment) {
  if (segment.work < 0) return 0;
  const TraceWork& work = index.work(segment.work);
  return PartOfTime(work.cores.without_core_ns, work.pass, segment.begin_ns, segment.end_ns);
}

Usual::Usual(const TraceIndex& index) : index_(&index) {
  std::vector<std::vector<std::int64_t>> work;
  std::vector<std::vector<std::int64_t>> handling;
  std::vector<std::vector<std::int64_t>> transit;
  std::set<std::int64_t> rounds;
  std::set<std::int64_t> with_checkpoint;
  for (const TraceWork& one : index.trace().work) {
    Put(work, WorkKey(one.pass), one.pass.end_ns - one.pass.begin_ns);
    (one.pass.kind == WorkKind::kCheckpoint ? with_checkpoint : rounds).insert(one.pass.round);
  }
  most_steps_have_checkpoints_ = 2 * with_checkpoint.size() > rounds.size();
  for (int i = 0; static_cast<std::size_t>(i) < index.trace().messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    if (m.begin_ns < 0) continue;
    Put(transit, TransitKey(i), m.arrived_ns - m.sent_ns);
    if (m.end_ns >= 0) Put(handling, HandlingKey(i), m.end_ns - m.begin_ns);
  }
  work_ = Medians(std::move(work));
  handling_ = Medians(std::move(handling));
  transit_ = Medians(std::move(transit));
}

std::size_t Usual::WorkKey(const PassRecord& pass) const {
  return static_cast<std::size_t>(std::max(pass.stage, 0)) * kWorkKinds +
         static_cast<std::size_t>(pass.kind) % kWorkKinds;
}

std::size_t Usual::HandlingKey(int message) const {
  const TraceMessage& m = index_->message(message);
  return static_cast<std::size_t>(std::max(m.type, 0)) * kNumActorKinds +
         static_cast<std::size_t>(index_->KindOf(m.receiver));
}

std::size_t Usual::TransitKey(int message) const {
  const TraceMessage& m = index_->message(message);
  const auto process = [&](int actor) {
    return actor < 0 ? -1 : index_->trace().actors[static_cast<std::size_t>(actor)].process;
  };
  return 2 * static_cast<std::size_t>(std::max(m.type, 0)) +
         (process(m.sender) == process(m.receiver) ? 0 : 1);
}

std::int64_t Usual::Work(const PassRecord& pass) const { return Look(work_, WorkKey(pass)); }
std::int64_t Usual::Handling(int message) const { return Look(handling_, HandlingKey(message)); }
std::int64_t Usual::Transit(int message) const { return Look(transit_, TransitKey(message)); }

std::int64_t Usual::Of(const Segment& segment) const {
  switch (segment.kind) {
    case SegmentKind::kHandler:
      return segment.work >= 0 ? Work(index_->work(segment.work).pass) : Handling(segment.message);
    case SegmentKind::kTransit:
      return Transit(segment.message);
    case SegmentKind::kQueue:
    case SegmentKind::kUnknown:
      return 0;
  }
  return 0;
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
