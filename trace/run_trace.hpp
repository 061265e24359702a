// The merged trace of all processes of a run, on one clock: the input of every analysis.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/actor_id.hpp"
#include "trace/pass_record.hpp"
#include "trace/work_usage.hpp"

namespace troupe {

struct TraceActor {
  ActorId id;
  int process = 0;   ///< index into RunTrace::processes
  std::string name;  ///< ToString(id), for people
};
inline TraceActor MakeTraceActor(const ActorId& id, int process = 0) {
  return {id, process, ToString(id)};
}

/// One message. Times in ns since the beginning of the trace, on the clock of process 0.
struct TraceMessage {
  std::uint64_t id = 0;
  int cause = -1;   ///< index of the message whose handler sent it; -1: none, or lost
  int type = 0;     ///< index into RunTrace::types
  int sender = -1;  ///< index into RunTrace::actors; -1: unknown
  int receiver = -1;
  std::int64_t sent_ns = 0;
  std::int64_t arrived_ns = 0;  ///< in the receiver's mailbox; never before sent_ns
  std::int64_t begin_ns = -1;   ///< of the handler; -1: it was never handled
  std::int64_t end_ns = -1;     ///< -1: its handler has not ended
  std::int64_t round = -1;      ///< -1: none
  std::int64_t unit = -1;       ///< microbatch or window since the start of the run; -1: none
  std::int64_t bytes = 0;       ///< of its tensors
  std::int64_t step = -1;       ///< as in TraceRecord
  int link = -1;                ///< index into RunTrace::links; -1: none
  int source = -1;   ///< index into RunTrace::sources; -1: it is not about samples of one
  int credits = -1;  ///< remaining on the edge after it; -1: not on an edge
  int mailbox = 0;   ///< messages in the mailbox before it
  MessageRole role = MessageRole::kOther;
  bool asked = false;  ///< the receiver had to request its bytes from another process
};

/// One piece of work of one device, on the same clock.
struct TraceWork {
  PassRecord pass;
  int message = -1;  ///< index of the message whose handler ran it
  WorkMemory memory;
  CoreTime cores;
};

struct TraceProcess {
  std::string name;  ///< "n0"
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t noted = 0;           ///< records since the start
  std::uint64_t dropped = 0;         ///< of these, overwritten by newer ones
  std::uint64_t torn = 0;            ///< half-written when the process ended
  std::int64_t clock_offset_ns = 0;  ///< added to its clock; 0 for process 0
  int cores = 0;                     ///< usable by it; 0: unknown
};

struct TraceLink {
  std::string name;  ///< "vision>language" at a boundary, "language.s0>s1" inside a module
  int from = 0;      ///< index into stages
  int to = 0;
  bool boundary = false;
};

struct RunTrace {
  std::string run;  ///< the directory
  std::vector<TraceProcess> processes;
  std::vector<std::string> missing;  ///< processes of the job without a file
  std::vector<std::string> skipped;  ///< a line for each file of the folder that is left out
  std::vector<StageId> stages;       ///< PassRecord::stage
  std::vector<TraceLink> links;
  std::vector<std::string> sources;  ///< of the data: "mix665k.json"
  std::vector<std::string> types;    ///< "Activation"
  std::vector<TraceActor> actors;
  std::vector<TraceMessage> messages;  ///< by sent_ns
  std::vector<TraceWork> work;         ///< by begin_ns
  std::vector<TraceWork> concurrent;   ///< IsConcurrent, by begin_ns
  std::int64_t origin_ns = 0;          ///< was subtracted from every time
};

/// The folder in the run directory for start number `start`, from 1: "trace", "trace-2".
std::string TraceFolderName(int start);
inline constexpr const char* kTraceExtension = ".trace";  ///< "n0.trace"

/// The folder of the last start of a run: RUN/trace, RUN/trace-2, ...; `run` itself if it
/// has none of these. Throws std::runtime_error if `run` is not a directory.
std::string NewestTraceFolder(const std::string& run);

/// Reads the trace of a run's last start. Works while the run lasts, and after a crash. Throws
/// std::runtime_error naming path and reason.
RunTrace ReadRunTrace(const std::string& run_directory);

}  // namespace troupe
