// Trace files: the names of the stages, then records until the end.
//
//   offset    bytes   content
//   0         8       "TRPTRACE"
//   8         4       version, 1
//   12        4       bytes of a record, 64
//   16        4       number of stage names
//   20        4       offset of the first record: the names' end, rounded up to 64
//   24        ...     each name: 4 bytes length, then that many bytes of UTF-8
//   ...       ...     zeros up to the first record
//   ...       64 each PassRecord, fields in the order of the struct
//
// Numbers are little-endian. Records are only ever appended, so whatever a crash cuts short or
// leaves as zeros is at the end, and a reader loses that and nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/pass_record.hpp"

namespace troupe {

inline constexpr std::uint32_t kTraceVersion = 1;

/// Writes one trace file. Used on one thread at a time.
class TraceWriter {
 public:
  /// Creates or replaces `path`. Throws std::runtime_error naming path and reason; so do all
  /// others.
  TraceWriter(std::string path, const std::vector<std::string>& stage_names);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Hands the records to the operating system. After a failure the file ends with the last append
  /// that succeeded (or a part of this one), and the next append continues there.
  void Append(std::span<const PassRecord> records);
  /// Writes are complete and checked once this returns. Idempotent; the destructor does the same
  /// and swallows the error.
  void Close();

 private:
  void Write(std::span<const std::byte> bytes);

  std::string path_;
  int file_ = -1;
  std::int64_t end_ = 0;  ///< bytes; where the next append goes
};

/// The content of a trace file.
struct Trace {
  std::vector<std::string> stage_names;
  std::vector<PassRecord> records;
  std::uint64_t torn_bytes = 0;  ///< at the end of the file, not part of any whole record
};

/// Throws std::runtime_error naming path and reason: not a trace, another version, a header that is
/// cut short, a record that names an unknown stage or kind.
Trace ReadTrace(const std::string& path);

}  // namespace troupe
