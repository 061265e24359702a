#include "trace/analyze/checkpoints.hpp"

#include <algorithm>
#include <map>

#include "trace/analyze/table.hpp"

namespace troupe {

std::vector<CheckpointTime> CheckpointTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
  std::map<std::int64_t, CheckpointTime> by_round;  // the round that the checkpoint delays
  for (int w = 0; w < std::ssize(index.trace().work); ++w) {
    const PassRecord& pass = index.work(w).pass;
    if (pass.kind != WorkKind::kCheckpoint) continue;
    const CheckpointTime first{pass.unit, pass.begin_ns, pass.end_ns, w};
    CheckpointTime& time = by_round.try_emplace(pass.round, first).first->second;
    const PassRecord& longest = index.work(time.longest).pass;
    if (pass.end_ns - pass.begin_ns > longest.end_ns - longest.begin_ns) time.longest = w;
    time.begin_ns = std::min(time.begin_ns, pass.begin_ns);
    time.end_ns = std::max(time.end_ns, pass.end_ns);
  }
  for (int i = 0; i < std::ssize(index.trace().messages); ++i) {
    if (index.message(i).role != MessageRole::kCheckpoint) continue;
    const auto found = by_round.find(index.RoundOf(i));
    if (found == by_round.end()) continue;
    found->second.end_ns = std::max(found->second.end_ns, index.message(i).end_ns);
  }
  std::vector<CheckpointTime> times;
  for (const auto& [round, time] : by_round) {
    if (time.begin_ns >= begin_ns && time.begin_ns < end_ns) times.push_back(time);
  }
  return times;
}

std::string Format(const std::vector<CheckpointTime>& checkpoints, const TraceIndex& index,
                   std::int64_t whole_ns) {
  if (checkpoints.empty()) return "";
  const auto step = [](const CheckpointTime& time) { return std::to_string(time.step); };
  std::int64_t all_ns = 0;
  for (const CheckpointTime& time : checkpoints) all_ns += time.length_ns();
  const std::string took = Duration(all_ns) + (checkpoints.size() > 1 ? " in all (" : " (") +
                           PercentOf(all_ns, whole_ns) + " of the time)";
  const CheckpointTime& longest =
      *std::ranges::max_element(checkpoints, {}, &CheckpointTime::length_ns);
  const PassRecord& shard = index.work(longest.longest).pass;
  const std::string by = "its slowest shard " + index.StageName(shard.stage) + " dp" +
                         std::to_string(shard.dp) + " on rank " + std::to_string(shard.rank) +
                         ", " + Duration(shard.end_ns - shard.begin_ns) + '\n';
  if (checkpoints.size() == 1) {
    return "checkpoint of step " + step(longest) + ": " + took + "; " + by;
  }
  return std::to_string(checkpoints.size()) + " checkpoints, of steps " +
         step(checkpoints.front()) + " to " + step(checkpoints.back()) + ": " + took +
         "; the longest, of step " + step(longest) + ", took " + Duration(longest.length_ns()) +
         ", " + by;
}

}  // namespace troupe
