// Finds the cause of every message in the records of all processes.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "trace/record.hpp"
#include "trace/run_trace.hpp"

namespace troupe {

/// Sender, receiver, and the sender's number for the request.
using RequestKey = std::tuple<ActorNumber, ActorNumber, std::uint64_t>;

/// The records of all processes, on the clock of process 0.
struct MergedRecords {
  std::vector<TraceRecord> messages;             ///< as RunTrace::messages
  std::unordered_map<std::uint64_t, int> by_id;  ///< index into `messages`
  std::vector<TraceRecord> work;
  std::map<RequestKey, TraceRecord> answered;  ///< RecordKind::kAnswered
};

/// Sets the cause of every message of `trace`, whose links are set. For messages from other processes, whose records lack it, also
/// sets the time at which they were sent. Then completes rounds and units from the request that a
/// message answers, or from the work it caused.
void ResolveCauses(const MergedRecords& records, RunTrace& trace);

}  // namespace troupe
