#include "trace/core_time.hpp"

#include <algorithm>

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

}  // namespace

void SetCoreTime(TraceRecord& record, const CoreTime& time) {
  record.bytes = static_cast<std::int64_t>(Written(time.on_core_ns));
  record.request = Written(time.without_core_ns);
}

CoreTime CoreTimeOf(const TraceRecord& record) {
  return {Read(static_cast<std::uint64_t>(record.bytes)), Read(record.request)};
}

}  // namespace troupe
