#include "app/cause.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <unistd.h>

#include "app/exit_code.hpp"

namespace troupe {
namespace {

std::atomic<bool> has_launcher = false;

/// Returns false if the pipe did not take the whole record.
bool WriteToLauncher(const std::string& head, const std::string& text) {
  static std::mutex mutex;  // a long record takes several writes
  const std::lock_guard lock(mutex);
  const std::string record = head + text;
  std::size_t written = 0;
  while (written <= record.size()) {  // with the zero byte
    const ssize_t count = write(kCausePipe, record.c_str() + written, record.size() + 1 - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

LauncherRecord ReadLauncherRecord(const std::string& record) {
  if (record.starts_with(static_cast<char>(LauncherRecord::Kind::kRunDirectory))) {
    return {LauncherRecord::Kind::kRunDirectory, {}, record.substr(1)};
  }
  if (record.starts_with(static_cast<char>(LauncherRecord::Kind::kGeneration))) {
    return {.kind = LauncherRecord::Kind::kGeneration,
            .cause = {},
            .directory = "",
            .generation = std::atoll(record.c_str() + 1)};
  }
  if (record.size() < 2) return {};
  return {LauncherRecord::Kind::kCause,
          {record.substr(2), static_cast<FailureKind>(record[1] - '0')},
          {}};
}

void PrintWarning(const std::string& line) {
  std::cerr << ("troupe: warning: " + line + "\n") << std::flush;
}

void PrintCause(const Failure& cause, const std::string& before) {
  const bool sent =
      has_launcher && WriteToLauncher({static_cast<char>(LauncherRecord::Kind::kCause),
                                       static_cast<char>('0' + static_cast<char>(cause.kind))},
                                      cause.text);
  const std::string text = before + (sent ? "" : "troupe: " + cause.text + "\n");
  if (!text.empty()) std::cerr << text << std::flush;
}

void SendCausesToLauncher() { has_launcher = true; }

void SendRunDirectoryToLauncher(const std::string& directory) {
  if (!has_launcher) return;
  static_cast<void>(
      WriteToLauncher({static_cast<char>(LauncherRecord::Kind::kRunDirectory)}, directory));
}

void SendGenerationToLauncher(std::int64_t generation) {
  if (!has_launcher) return;
  static_cast<void>(WriteToLauncher({static_cast<char>(LauncherRecord::Kind::kGeneration)},
                                    std::to_string(generation)));
}

int ExitCodeOf(FailureKind kind) { return kind == FailureKind::kLost ? kExitLost : kExitFailed; }

}  // namespace troupe
