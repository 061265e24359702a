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
    if (!any_) time_ = {.step = pass.unit, .begin_ns = pass.begin_ns, .slowest = {}};
    any_ = true;
    time_.begin_ns = std::min(time_.begin_ns, pass.begin_ns);
    time_.end_ns = std::max(time_.end_ns, pass.end_ns);
    if (pass.kind == WorkKind::kCheckpointWrite && work.cores.known()) {
      time_.on_core_ns += work.cores.on_core_ns;
    }
    if (pass.kind == WorkKind::kSnapshot) {
      copied_ns_ = std::max(copied_ns_, pass.end_ns);
    } else if (LengthOf(pass) > LengthOf(time_.slowest)) {
      time_.slowest = pass;
    }
  }

  void Handled(const TraceMessage& message) {
    time_.end_ns = std::max(time_.end_ns, message.end_ns);
  }

  bool any() const { return any_; }

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
  CheckpointTime time_;
  std::int64_t copied_ns_ = 0;
  std::int64_t held_ns_ = 0;  ///< the longest wait
};

}  // namespace

std::vector<CheckpointTime> CheckpointTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
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
  std::vector<CheckpointTime> times;
  for (const auto& [step, gathered] : by_step) {
    const CheckpointTime time = gathered.Result();
    if (gathered.any() && time.begin_ns >= begin_ns && time.begin_ns < end_ns) {
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
