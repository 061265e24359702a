#include "trace/work_usage.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

// Older records hold zeros in these places: 0 means unknown, and 0 ns is written as 1.
constexpr std::int64_t kMostNs = std::int64_t{1} << 60;

std::uint64_t Written(std::int64_t ns) {
  return ns < 0 ? 0 : static_cast<std::uint64_t>(std::min(ns, kMostNs)) + 1;
}

std::int64_t Read(std::uint64_t written) {
  const auto most = static_cast<std::uint64_t>(kMostNs);
  return written == 0 || written > most ? CoreTime::kUnknown
                                        : static_cast<std::int64_t>(written) - 1;
}

std::uint32_t ToKib(std::int64_t bytes) {
  constexpr std::int64_t kMostKib = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(bytes / 1024, 0, kMostKib));
}

std::int64_t FromKib(std::uint32_t kib) { return static_cast<std::int64_t>(kib) * 1024; }

}  // namespace

void SetCoreTime(TraceRecord& record, const CoreTime& time) {
  record.bytes = static_cast<std::int64_t>(Written(time.on_core_ns));
  record.request = Written(time.without_core_ns);
}

CoreTime CoreTimeOf(const TraceRecord& record) {
  return {Read(static_cast<std::uint64_t>(record.bytes)), Read(record.request)};
}

void SetMemory(TraceRecord& record, const WorkMemory& memory) {
  record.memory_kib = ToKib(memory.in_use_bytes);
  record.first_request = ToKib(memory.reserved_bytes);
  record.last_request = ToKib(memory.peak_bytes);
  constexpr int kMostGpus = std::numeric_limits<std::uint8_t>::max();
  record.gpu = static_cast<std::uint8_t>(std::clamp(memory.gpu + 1, 0, kMostGpus));
}

WorkMemory MemoryOf(const TraceRecord& record) {
  return {FromKib(record.memory_kib), FromKib(record.first_request), FromKib(record.last_request),
          record.gpu - 1};
}

}  // namespace troupe
