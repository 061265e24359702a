#include "trace/analyze/checkpoints.hpp"

#include <algorithm>
#include <map>

#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

std::int64_t LengthOf(const PassRecord& pass) { return pass.end_ns - pass.begin_ns; }

/// The work for one checkpoint.
class Gathered {
 public:
  void Add(const TraceWork& work) {
    const PassRecord& pass = work.pass;
    if (pass.kind == WorkKind::kSnapshotWait) {
      held_ns_ = std::max(held_ns_, LengthOf(pass));
      return;
    }
    if (pass.kind == WorkKind::kMirror) {
      mirror_ns_ = mirror_ns_ == 0 ? pass.begin_ns : std::min(mirror_ns_, pass.begin_ns);
      if (work.cores.known()) mirror_on_core_ns_ += work.cores.on_core_ns;
      return;
    }
    if (!any_) time_ = {.step = pass.unit, .begin_ns = pass.begin_ns, .slowest = {}};
    any_ = true;
    time_.begin_ns = std::min(time_.begin_ns, pass.begin_ns);
    time_.end_ns = std::max(time_.end_ns, pass.end_ns);
    if (pass.kind == WorkKind::kCheckpointWrite && work.cores.known()) {
      time_.on_core_ns += work.cores.on_core_ns;
    }
    is_stored_ = is_stored_ || pass.kind != WorkKind::kSnapshot;
    if (pass.kind == WorkKind::kSnapshot) {
      copied_ns_ = std::max(copied_ns_, pass.end_ns);
    } else if (LengthOf(pass) > LengthOf(time_.slowest)) {
      time_.slowest = pass;
    }
  }

  void Handled(const TraceMessage& message) {
    time_.end_ns = std::max(time_.end_ns, message.end_ns);
  }

  /// Whether a file was written; else it was only mirrored.
  bool is_stored() const { return is_stored_; }
  /// When its mirror began; 0: it has none.
  std::int64_t mirror_ns() const { return mirror_ns_; }
  std::int64_t mirror_on_core_ns() const { return mirror_on_core_ns_; }
  std::int64_t held_ns() const { return held_ns_; }

  CheckpointTime Result() const {
    CheckpointTime time = time_;
    if (copied_ns_ == 0) {
      time.waited_ns = time.length_ns();
    } else {
      time.copy_ns = copied_ns_ - time.begin_ns;
      time.waited_ns = held_ns_;
    }
    return time;
  }

 private:
  bool any_ = false;
  bool is_stored_ = false;
  std::int64_t mirror_ns_ = 0;
  std::int64_t mirror_on_core_ns_ = 0;
  CheckpointTime time_;
  std::int64_t copied_ns_ = 0;
  std::int64_t held_ns_ = 0;  ///< the longest wait
};

std::map<std::int64_t, Gathered> GatherBySteps(const TraceIndex& index) {
  std::map<std::int64_t, Gathered> by_step;
  std::map<std::int64_t, std::int64_t> steps;  // by the round of their work
  for (const auto* list : {&index.trace().work, &index.trace().concurrent}) {
    for (const TraceWork& work : *list) {
      if (!IsForCheckpoint(work.pass.kind)) continue;
      by_step[work.pass.unit].Add(work);
      if (work.pass.kind != WorkKind::kSnapshotWait) steps[work.pass.round] = work.pass.unit;
    }
  }
  for (int i = 0; i < std::ssize(index.trace().messages); ++i) {
    if (index.message(i).role != MessageRole::kCheckpoint) continue;
    const auto step = steps.find(index.RoundOf(i));
    if (step != steps.end()) by_step.at(step->second).Handled(index.message(i));
  }
  return by_step;
}

}  // namespace

MirrorTimes MirrorTimesOf(const TraceIndex& index, std::int64_t begin_ns, std::int64_t end_ns) {
  MirrorTimes times;
  for (const auto& [step, gathered] : GatherBySteps(index)) {
    const std::int64_t at_ns = gathered.mirror_ns();
    if (at_ns == 0 || at_ns < begin_ns || at_ns >= end_ns) continue;
    ++times.mirrors;
    times.on_core_ns += gathered.mirror_on_core_ns();
    if (!gathered.is_stored()) times.waited_ns += gathered.held_ns();
  }
  return times;
}

std::string Format(const MirrorTimes& mirrors, std::int64_t whole_ns) {
  if (mirrors.mirrors == 0) return "";
  std::string text = Counted(mirrors.mirrors, "mirror") + " in memory: ";
  if (mirrors.on_core_ns > 0) text += "made on a core in " + Duration(mirrors.on_core_ns) + "; ";
  return text + "training waited " + Duration(mirrors.waited_ns) + ", " +
         PercentOf(mirrors.waited_ns, whole_ns) + " of the time\n";
}

std::vector<CheckpointTime> CheckpointTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
  std::vector<CheckpointTime> times;
  for (const auto& [step, gathered] : GatherBySteps(index)) {
    const CheckpointTime time = gathered.Result();
    if (gathered.is_stored() && time.begin_ns >= begin_ns && time.begin_ns < end_ns) {
      times.push_back(time);
    }
  }
  return times;
}

std::string Format(const std::vector<CheckpointTime>& checkpoints, const TraceIndex& index,
                   std::int64_t whole_ns) {
  if (checkpoints.empty()) return "";
  CheckpointTime all;
  for (const CheckpointTime& time : checkpoints) {
    all.end_ns += time.length_ns();
    all.copy_ns += time.copy_ns;
    all.waited_ns += time.waited_ns;
    all.on_core_ns += time.on_core_ns;
  }
  const bool several = checkpoints.size() > 1;
  const CheckpointTime& longest =
      *std::ranges::max_element(checkpoints, {}, &CheckpointTime::length_ns);
  const std::string first = std::to_string(checkpoints.front().step);
  std::string text = several ? std::to_string(checkpoints.size()) + " checkpoints, of steps " +
                                   first + " to " + std::to_string(checkpoints.back().step)
                             : "checkpoint of step " + first;
  text += ": " + Duration(all.length_ns()) + (several ? " in all (" : " (");
  if (all.on_core_ns > 0) text += "writers on a core for " + Duration(all.on_core_ns) + "; ";
  if (all.copy_ns > 0) {
    text += Duration(all.copy_ns) + " to copy; training waited " + Duration(all.waited_ns) + ", ";
  }
  text += PercentOf(all.waited_ns, whole_ns) + " of the time); ";
  if (several) {
    text += "the longest, of step " + std::to_string(longest.step) + ", took " +
            Duration(longest.length_ns()) + ", ";
  }
  return text + "its slowest shard " + index.StageName(longest.slowest.stage) + " dp" +
         std::to_string(longest.slowest.dp) + " on rank " + std::to_string(longest.slowest.rank) +
         ", " + Duration(LengthOf(longest.slowest)) + '\n';
}

}  // namespace troupe
