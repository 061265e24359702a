// The parts of MergeTraces. Each decides one thing about what all processes have noted.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "trace/recorder.hpp"

namespace troupe {

/// What all processes still hold. Rings that are full have lost different times: what only some of
/// them know would read as waits that never were.
struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t last_cut_round = -1;  ///< work of it began before that

  bool Holds(const TraceRecord& record) const;
};

Window WholeWindow(const std::vector<TraceFile>& files);

/// Sender, receiver and number, by which the sender counts.
using RequestKey = std::tuple<ActorNumber, ActorNumber, std::uint64_t>;

/// The records of all processes, on the clock of process 0.
struct MergedRecords {
  std::vector<TraceRecord> messages;             ///< as RunTrace::messages
  std::unordered_map<std::uint64_t, int> by_id;  ///< index into `messages`
  std::vector<TraceRecord> work;
  std::map<RequestKey, TraceRecord> answered;  ///< that an answer has left for another process
};

/// Sets the cause of every message, also of those from other processes, which do not say in which
/// handling they were sent, and when these were sent; then the round and unit of those that say
/// less than the question or the work they are about.
void ResolveCauses(const MergedRecords& records, RunTrace& trace);

/// Sets the link that every message crosses, by its two actors.
void SetLinks(RunTrace& trace);

/// Sorts messages by sent_ns and work by begin_ns, indices following, and counts all times from the
/// first of them.
void SortByTime(RunTrace& trace);

}  // namespace troupe
