#include "trace/work_memory.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

std::uint32_t Kib(std::int64_t bytes) {
  constexpr std::int64_t kMostKib = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(bytes / 1024, 0, kMostKib));
}

std::int64_t Bytes(std::uint32_t kib) { return static_cast<std::int64_t>(kib) * 1024; }

}  // namespace

void SetMemory(TraceRecord& record, const WorkMemory& memory) {
  record.memory_kib = Kib(memory.in_use_bytes);
  record.first_request = Kib(memory.reserved_bytes);
  record.last_request = Kib(memory.peak_bytes);
  constexpr int kMostGpus = std::numeric_limits<std::uint8_t>::max();
  record.gpu = static_cast<std::uint8_t>(std::clamp(memory.gpu + 1, 0, kMostGpus));
}

WorkMemory MemoryOf(const TraceRecord& record) {
  return {Bytes(record.memory_kib), Bytes(record.first_request), Bytes(record.last_request),
          record.gpu - 1};
}

}  // namespace troupe
