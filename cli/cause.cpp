#include "cli/cause.hpp"

#include <atomic>
#include <cerrno>
#include <iostream>
#include <mutex>
#include <unistd.h>

#include "cli/commands.hpp"

namespace troupe {
namespace {

std::atomic<bool> has_launcher = false;

/// False: the pipe does not take all of it.
bool WriteToLauncher(const std::string& cause) {
  static std::mutex mutex;  // long causes are not written in one piece
  const std::lock_guard lock(mutex);
  std::size_t written = 0;
  while (written <= cause.size()) {  // with the zero byte
    const ssize_t count = write(kCausePipe, cause.c_str() + written, cause.size() + 1 - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

std::string CauseRecord(const Failure& cause) {
  return static_cast<char>('0' + static_cast<char>(cause.kind)) + cause.text;
}

Failure ReadCauseRecord(const std::string& record) {
  if (record.empty()) return {};
  return {record.substr(1), static_cast<FailureKind>(record.front() - '0')};
}

void PrintCause(const Failure& cause, const std::string& before) {
  const bool sent = has_launcher && WriteToLauncher(CauseRecord(cause));
  const std::string text = before + (sent ? "" : "troupe: " + cause.text + "\n");
  if (!text.empty()) std::cerr << text << std::flush;
}

void SendCausesToLauncher() { has_launcher = true; }

int ExitCodeOf(FailureKind kind) { return kind == FailureKind::kLost ? kExitLost : kExitFailed; }

}  // namespace troupe
