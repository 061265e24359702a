// Sums up the time of a run: per stage and replica, per edge, and the longest waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/checkpoints.hpp"
#include "trace/analyze/collectives.hpp"
#include "trace/analyze/offload.hpp"
#include "trace/analyze/steps.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {

/// Idle time of devices that ended with one kind of message.
struct WaitShare {
  std::string what;    ///< "activation from vision"
  std::string on;      ///< the message: "Activation over vision>language"
  std::string sender;  ///< the actor that sent it
  std::int64_t total_ns = 0;
};

/// One replica of a stage, over all its ranks. All times are summed over the ranks: wall = own +
/// other + idle.
struct StageTime {
  int stage = 0;
  int dp = 0;
  std::vector<int> ranks;
  std::int64_t wall_ns = 0;
  std::int64_t own_ns = 0;       ///< passes of the stage itself
  CoreTime cores;                ///< of these passes; unknown if no pass holds it
  std::int64_t other_ns = 0;     ///< all other work of its ranks
  std::int64_t idle_ns = 0;      ///< no work
  std::int64_t bubble_ns = 0;    ///< no computation, for this stage or any other
  std::vector<WaitShare> waits;  ///< waits before its work, longest first; part of idle_ns
};

/// All messages of one type over one link.
struct EdgeTime {
  int link = 0;
  int type = 0;
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  std::int64_t queue_median_ns = 0;  ///< from arrival in the mailbox to the handler
  std::int64_t queue_p99_ns = 0;
  std::int64_t queue_max_ns = 0;
  std::int64_t unhandled = 0;  ///< never handled
};

struct LongWait {
  int stage = 0;
  int dp = 0;
  int rank = 0;
  std::int64_t round = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::string work;  ///< the work after it: "F (step 2 mb 3)"
  WaitShare wait;    ///< total_ns as begin_ns to end_ns
};

/// The largest values that the work of a rank holds for its GPU.
struct RankMemory {
  int rank = 0;
  int process = 0;
  WorkMemory most;
};

struct Summary {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  // Over all ranks, each counted once, however many stages it has.
  std::int64_t ranks = 0;
  std::int64_t computed_ns = 0;  ///< passes, reductions and updates; summed over the ranks
  CoreTime cores;                ///< of all their work, summed; unknown if no work holds it

  /// Share of the time of all ranks in which they compute nothing (docs/schedules.md).
  double bubble() const;
  std::vector<StageTime> stages;            ///< by stage, then replica
  std::vector<EdgeTime> edges;              ///< by link, then type
  std::vector<LongWait> waits;              ///< longest first, at most `top`
  std::vector<OffloadTime> offloads;        ///< by module
  std::vector<CollectiveTime> collectives;  ///< by module
  std::vector<ActivationTime> activations;  ///< by module, if any leave
  std::vector<CheckpointTime> checkpoints;  ///< by time
  MirrorTimes mirrors;
  std::vector<std::int64_t> memory_bytes;  ///< by process: the most in use; 0: unknown
  std::vector<RankMemory> gpu_memory;      ///< by rank, for ranks that compute on a GPU
};

/// Covers the time from the beginning of the first of `spans` to the end of the last; without spans
/// the whole trace. Edges count the messages of these steps.
Summary Summarize(const TraceIndex& index, const std::vector<StepSpan>& spans, std::size_t top = 5);

/// kActors adds actors and their messages to waits.
enum class Detail { kPlain, kActors };

/// One row per stage and replica, shares as "37.5%".
Table StageTable(const Summary& summary, const TraceIndex& index, Detail detail = Detail::kPlain);

/// One line if work waited for cores for at least 1% of the time of all ranks, with the processes
/// that have fewer cores than ranks; else empty.
std::string WaitedForCores(const Summary& summary, const TraceIndex& index);

/// "8 ranks on 2 cores, 4 ranks on 2 cores on node2": hosts whose processes have fewer cores than ranks;
/// empty if there are none.
std::string RanksSharingCores(const TraceIndex& index);

/// The report for people; it begins with the gaps of the trace.
std::string Format(const Summary& summary, const TraceIndex& index, const Steps& steps,
                   Detail detail = Detail::kPlain);

/// The gaps of the trace: a line for dropped and torn records and processes without a file, then
/// one for each file that was not read. Empty if there are none.
std::string DescribeGaps(const RunTrace& trace);

}  // namespace troupe
