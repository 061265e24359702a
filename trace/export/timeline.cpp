#include "trace/export/timeline.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "layout/at.hpp"
#include "trace/export/counters.hpp"

namespace troupe {
namespace {

using Path = std::vector<std::string>;

/// Ranks whose sums of gradients ran concurrently with their other work, as on a device with lanes.
std::set<int> RanksWithSumsBeside(const TraceIndex& index) {
  std::map<int, std::vector<const PassRecord*>> by_rank;
  for (const TraceWork& work : index.trace().work) {
    if (!IsCopy(work.pass.kind)) by_rank[work.pass.rank].push_back(&work.pass);
  }
  std::set<int> ranks;
  for (auto& [rank, passes] : by_rank) {
    std::ranges::sort(passes, {}, &PassRecord::begin_ns);
    std::int64_t sums_end_ns = INT64_MIN;
    std::int64_t others_end_ns = INT64_MIN;
    for (const PassRecord* pass : passes) {
      const bool sum = pass->kind == WorkKind::kReduce;
      if (pass->begin_ns < (sum ? others_end_ns : sums_end_ns)) ranks.insert(rank);
      std::int64_t& end_ns = sum ? sums_end_ns : others_end_ns;
      end_ns = std::max(end_ns, pass->end_ns);
    }
  }
  return ranks;
}

/// "language", "s1".
Path PathOf(const TraceIndex& index, int stage) {
  const StageId* const id = index.StageAt(stage);
  return {index.ModuleOf(stage), "s" + std::to_string(id == nullptr ? 0 : id->number)};
}

/// The path of an actor inside its process. `stage_of_rank` covers the ranks that ran work.
Path PlaceOf(const TraceIndex& index, int actor, const std::map<int, int>& stage_of_rank) {
  const ActorId& id = index.IdOf(actor);
  const auto in_stage = [&](int stage, const std::string& name) {
    Path path = PathOf(index, stage);
    path.push_back(name);
    return path;
  };
  const std::string replica = "dp" + std::to_string(id.replica);
  switch (id.kind) {
    case ActorKind::kDevice: {
      const std::string rank = "rank " + std::to_string(id.rank);
      const auto stage = stage_of_rank.find(id.rank);
      return stage == stage_of_rank.end() ? Path{"devices", rank} : in_stage(stage->second, rank);
    }
    case ActorKind::kStage:
      return in_stage(id.stage, "stage " + replica);
    case ActorKind::kUpdate:
      return in_stage(id.stage, "update");
    case ActorKind::kFeed:
      return {id.of, "feed " + replica};
    case ActorKind::kDispatcher:
      return {"data", "dispatcher of " + id.of};
    case ActorKind::kDataWorker:
      return {"data", "worker " + std::to_string(id.set) + " of " + id.of};
    case ActorKind::kLeader:
      return {id.of, std::string("leader ") + ToString(id.end) + '.' + std::to_string(id.replica)};
    default:
      return {"actors", index.ActorName(actor)};
  }
}

class Maker {
 public:
  Maker(const TraceIndex& index, const std::vector<StepSpan>& spans, Stretch stretch)
      : index_(index), whole_(spans.empty() || stretch == Stretch::kWhole) {
    result_.steps = spans;
    for (const StepSpan& span : spans) rounds_.insert(span.round);
    result_.end_ns = index.end_ns() + 1;
    if (whole_) return;
    result_.begin_ns = std::ranges::min(spans, {}, &StepSpan::begin_ns).begin_ns;
    result_.end_ns = std::ranges::max(spans, {}, &StepSpan::end_ns).end_ns;
  }

  Timeline Make() {
    Choose();
    MakeLanes();
    PlaceSends();
    PlaceSlices();
    result_.counters = CountersOf(index_, result_);
    return std::move(result_);
  }

 private:
  void Choose();
  void MakeLanes();
  void PlaceSends();
  void PlaceSlices();
  void PlaceHandlers(int lane, std::vector<int> messages);
  void PlaceWork(int lane, const std::vector<int>& work);
  /// Whether an event of `round` from `begin_ns` to `end_ns` is in the stretch.
  bool Holds(std::int64_t round, std::int64_t begin_ns, std::int64_t end_ns) const {
    return whole_ || (begin_ns < result_.end_ns && end_ns >= result_.begin_ns) ||
           rounds_.count(round) > 0;
  }

  const TraceIndex& index_;
  const bool whole_;
  std::set<std::int64_t> rounds_;  ///< of the steps
  Timeline result_;
  std::vector<int> messages_;  ///< those with arrows
  /// By rank and name of the lane (kWorkLanes).
  std::map<std::pair<int, std::string>, std::vector<int>> work_;
  std::map<int, int> stage_of_rank_;
  std::map<int, std::set<int>> stages_of_rank_;
  std::map<int, int> handlers_;  ///< lane by actor, -1 the outside
  std::vector<int> arrow_of_;    ///< by message
};

void Maker::Choose() {
  for (int i = 0; At(i) < index_.trace().messages.size(); ++i) {
    const TraceMessage& m = index_.message(i);
    const std::int64_t end_ns = m.end_ns < 0 ? index_.end_ns() : m.end_ns;
    if (!Holds(index_.RoundOf(i), m.sent_ns, end_ns)) continue;
    result_.of_steps += rounds_.count(index_.RoundOf(i)) > 0 ? 1 : 0;
    if (m.begin_ns < 0) {
      ++result_.unhandled;
    } else if (m.receiver < 0) {
      ++result_.nameless;
    } else {
      messages_.push_back(i);
    }
  }
  const std::set<int> sums_beside = RanksWithSumsBeside(index_);
  const auto lane_of = [&](const PassRecord& pass) {
    if (IsCopy(pass.kind)) return "copies";
    return pass.kind == WorkKind::kReduce && sums_beside.contains(pass.rank) ? "sums" : "work";
  };
  for (int w = 0; At(w) < index_.trace().work.size(); ++w) {
    const PassRecord& pass = index_.work(w).pass;
    const auto at = stage_of_rank_.try_emplace(pass.rank, pass.stage).first;
    at->second = std::min(at->second, pass.stage);
    stages_of_rank_[pass.rank].insert(pass.stage);
    if (Holds(pass.round, pass.begin_ns, pass.end_ns))
      work_[{pass.rank, lane_of(pass)}].push_back(w);
  }
}

void Maker::MakeLanes() {
  std::vector<TimelineLane>& lanes = result_.lanes;
  const auto add = [&](int actor, LaneKind kind, const std::string& lane) {
    TimelineLane made{{}, kind, actor, 0, -1, {}};
    if (actor < 0) {
      made.path = {"outside"};
    } else {
      made.process = index_.trace().actors[At(actor)].process;
      made.path = PlaceOf(index_, actor, stage_of_rank_);
      made.path.insert(made.path.begin(), ProcessName(index_.trace(), made.process));
      if (!lane.empty()) made.path.push_back(lane);
    }
    lanes.push_back(std::move(made));
  };
  std::set<int> used;
  for (const int i : messages_) used.insert({index_.message(i).sender, index_.message(i).receiver});
  for (int actor = 0; At(actor) < index_.trace().actors.size(); ++actor) {
    if (index_.KindOf(actor) != ActorKind::kDevice) continue;
    const int rank = index_.IdOf(actor).rank;
    for (const char* lane : kWorkLanes) {
      if (!work_.contains({rank, lane})) continue;
      add(actor, LaneKind::kWork, lane);
      lanes.back().rank = rank;
      lanes.back().stages.assign(stages_of_rank_[rank].begin(), stages_of_rank_[rank].end());
    }
  }
  for (const int actor : used) {
    const bool device = index_.KindOf(actor) == ActorKind::kDevice;
    add(actor, LaneKind::kHandlers, device ? "messages" : "");
  }
  std::ranges::stable_sort(lanes, {}, [](const TimelineLane& lane) {
    return std::tuple(lane.process, lane.actor < 0, lane.path);
  });
  for (int lane = 0; At(lane) < lanes.size(); ++lane) {
    if (lanes[At(lane)].kind == LaneKind::kHandlers) handlers_[lanes[At(lane)].actor] = lane;
  }
}

void Maker::PlaceSends() {
  arrow_of_.assign(index_.trace().messages.size(), -1);
  std::vector<std::int64_t> last(result_.lanes.size(), -1);
  for (const int i : messages_) {
    const TraceMessage& m = index_.message(i);
    Arrow arrow{i, handlers_.at(m.sender)};
    std::int64_t& before = last[At(arrow.from_lane)];
    arrow.sent_ns = std::max(m.sent_ns, before + 1);
    before = arrow.sent_ns;
    arrow_of_[At(i)] = static_cast<int>(result_.arrows.size());
    result_.arrows.push_back(arrow);
  }
}

void Maker::PlaceSlices() {
  std::map<int, std::vector<int>> by_lane;
  for (const int i : messages_) by_lane[handlers_.at(index_.message(i).receiver)].push_back(i);
  for (int lane = 0; At(lane) < result_.lanes.size(); ++lane) {
    const TimelineLane& made = result_.lanes[At(lane)];
    if (made.kind == LaneKind::kWork) {
      PlaceWork(lane, work_[{made.rank, made.path.back()}]);
    } else {
      PlaceHandlers(lane, std::move(by_lane[lane]));
    }
  }
}

void Maker::PlaceHandlers(int lane, std::vector<int> messages) {
  std::ranges::stable_sort(messages, {}, [&](int i) { return index_.message(i).begin_ns; });
  std::int64_t until = 0;
  for (const int i : messages) {
    const TraceMessage& m = index_.message(i);
    Arrow& arrow = result_.arrows[At(arrow_of_[At(i)])];
    const std::int64_t begin_ns = std::max({m.begin_ns, until, arrow.sent_ns + 1});
    arrow.slice = static_cast<int>(result_.slices.size());
    const std::int64_t end_ns = m.end_ns < 0 ? index_.end_ns() : m.end_ns;
    until = std::max(end_ns, begin_ns + 1);
    result_.slices.push_back({lane, i, -1, begin_ns, until});
  }
}

void Maker::PlaceWork(int lane, const std::vector<int>& work) {
  std::int64_t until = 0;
  for (const int w : work) {
    const TraceWork& one = index_.work(w);
    const std::int64_t begin_ns = std::max(one.pass.begin_ns, until);
    until = std::max(one.pass.end_ns, begin_ns + 1);
    result_.slices.push_back({lane, one.message, w, begin_ns, until});
  }
}

}  // namespace

Timeline MakeTimeline(const TraceIndex& index, const std::vector<StepSpan>& spans,
                      Stretch stretch) {
  return Maker(index, spans, stretch).Make();
}

std::string ProcessName(const RunTrace& trace, int process) {
  if (At(process) < trace.processes.size()) return trace.processes[At(process)].name;
  return "n" + std::to_string(process);
}

std::string SliceName(const TraceIndex& index, const LaneSlice& slice) {
  if (slice.work < 0) return index.TypeName(slice.message);
  const PassRecord& pass = index.work(slice.work).pass;
  const std::string kind = ToString(pass.kind);
  if (IsForCheckpoint(pass.kind)) return kind + " " + std::to_string(pass.unit);
  const std::int64_t number = index.places().Of(pass).number;
  return IsPass(pass.kind) && number >= 0 ? kind + " " + std::to_string(number) : kind;
}

}  // namespace troupe
