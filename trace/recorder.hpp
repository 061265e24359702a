// Records a process's messages and its devices' work in a bounded ring of TraceRecords. The ring is
// a mapped file, so it can be read while the process runs and after it was killed.
//
// The file; numbers are little-endian, times in ns:
//   offset  bytes  content
//   0       8      "TRPTRACE"
//   8       4      version, 4
//   12      4      bytes of a record, 128
//   16      8      records that the ring holds
//   24      8      offset of the first record
//   32      8      offset of the names
//   40      8      bytes of names so far
//   48      4      process
//   52      4      processes of the job
//   56      8      records written since the start: record n (from 1) is in slot (n - 1) % capacity
//   64      8      offset from the clock of this file to that of process 0
//   72      8      wall clock minus the clock of this file
//   80      8      process id of the operating system
//   names          one per line: a letter, a number, a blank, the name
//                    P this process   H its host   Q each process of the job
//                    C this process: the number of its usable cores
//                    T message type
//                    S stage: "NUMBER MODULE", its number within the module
//                    L link: "FROM TO boundary|hop NAME" with the stages' numbers
//                    A actor, by ActorNumber: "KIND END STAGE REPLICA RANK SET LINK OF", numbers
//                      and a text as ActorId has them
//   records        128 bytes each; `number` identifies the record in a slot: 0 is an empty slot,
//                  all ones a record that is being written
//
// The version identifies the layout; files of other versions are refused. A new value keeps the
// version if it takes the place of zeros and 0 means unknown. So programs read older files, and
// older programs read newer ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "trace/mapped_memory.hpp"
#include "trace/record.hpp"
#include "trace/run_trace.hpp"

namespace troupe {

inline constexpr std::uint32_t kTraceVersion = 4;

struct RecorderOptions {
  std::string path;  ///< of the file; empty: in memory only
  int process = 0;
  int cores = 0;                                ///< usable by the process; 0: unknown
  std::vector<std::string> processes = {"n0"};  ///< names of all processes of the job
  std::vector<StageId> stages;                  ///< by StageGraph's number
  std::vector<TraceLink> links;
  std::vector<std::string> sources = {};  ///< of the data, by place in the configuration
  std::vector<std::string> types;         ///< names of message types, by number
  std::size_t capacity = 1 << 17;         ///< records
  std::size_t names_bytes = 1 << 20;      ///< capacity for names; names beyond it are dropped
};

/// A name line: "T 12 Slice" is {'T', 12, "Slice"}. Number -1: the line has none.
struct TraceName {
  char kind = ' ';
  std::int64_t number = -1;
  std::string text;
  friend bool operator==(const TraceName&, const TraceName&) = default;
};

/// The trace of one process.
struct TraceFile {
  std::uint32_t process = 0;
  std::uint32_t processes = 1;
  std::uint64_t noted = 0;
  std::uint64_t capacity = 0;
  std::int64_t clock_offset_ns = 0;
  std::int64_t pid = 0;
  std::vector<TraceName> names;
  std::vector<TraceRecord> records;  ///< complete records, oldest first
  std::uint64_t torn = 0;            ///< slots that were being written, or are damaged
};

/// Thread-safe. After construction it neither blocks nor allocates.
class Recorder {
 public:
  /// Throws std::runtime_error naming path and reason; std::invalid_argument for a capacity of 0.
  explicit Recorder(const RecorderOptions& options);

  void NameActor(ActorNumber actor, const ActorId& id);
  void SetClockOffset(std::int64_t offset_ns);

  /// Stores the record with the next number and its id. Returns the number.
  std::uint64_t Note(TraceRecord record);
  /// The id of record `number`.
  std::uint64_t IdOf(std::uint64_t number) const { return prefix_ | number; }
  // Begin and End complete a message's record if the ring still holds it.
  void Begin(std::uint64_t number, std::int64_t at_ns);
  void End(std::uint64_t number, std::int64_t at_ns, std::uint64_t first_request,
           std::uint64_t last_request);

  std::uint64_t noted() const;
  std::uint64_t dropped() const;
  TraceFile Snapshot() const;

 private:
  std::byte* Slot(std::uint64_t number) const;
  void AddName(char kind, std::size_t number, const std::string& text);

  MappedMemory memory_;
  const std::uint64_t capacity_;
  const std::uint64_t prefix_;
  std::size_t names_at_ = 0;
  std::size_t records_at_ = 0;
  std::mutex names_mutex_;
  std::size_t names_end_ = 0;
};

/// Throws std::runtime_error naming path and reason: not a trace, another version, a corrupt
/// header. Counts damaged or half-written records as torn.
TraceFile ReadTraceFile(const std::string& path);

/// Merges the files of all processes into one trace.
RunTrace MergeTraces(const std::vector<TraceFile>& files, const std::string& run);

}  // namespace troupe
