// The parts of MergeTraces. Each derives one fact from the records of all processes.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "trace/recorder.hpp"

namespace troupe {

/// The time span that all processes still hold. Full rings have lost different spans; records of
/// only some processes would look like waits that never happened.
struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t last_cut_round = -1;  ///< the last round with work before begin_ns

  bool Holds(const TraceRecord& record) const;
};

Window WholeWindow(const std::vector<TraceFile>& files);

/// Sender, receiver, and the sender's number for the request.
using RequestKey = std::tuple<ActorNumber, ActorNumber, std::uint64_t>;

/// The records of all processes, on the clock of process 0.
struct MergedRecords {
  std::vector<TraceRecord> messages;             ///< as RunTrace::messages
  std::unordered_map<std::uint64_t, int> by_id;  ///< index into `messages`
  std::vector<TraceRecord> work;
  std::map<RequestKey, TraceRecord> answered;  ///< RecordKind::kAnswered
};

/// Sets the cause of every message. For messages from other processes, whose records lack it, also
/// sets the time at which they were sent. Then completes rounds and units from the request that a
/// message answers, or from the work it caused.
void ResolveCauses(const MergedRecords& records, RunTrace& trace);

/// Sets the link that every message crosses, from its two actors.
void SetLinks(RunTrace& trace);

/// Sorts messages by sent_ns and work by begin_ns, updates all indices, and subtracts the earliest
/// time from all times.
void SortByTime(RunTrace& trace);

}  // namespace troupe
