#include "app/launched_child.hpp"

#include <csignal>
#include <cstring>
#include <sys/wait.h>

#include "app/exit_code.hpp"
#include "app/interrupt.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Killed because the reader of its output is gone.
bool Unread(int status) { return KilledBy(status, SIGPIPE); }

}  // namespace

bool KilledBy(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

bool AsksToEnd(int status) { return WIFSIGNALED(status) && EndsJob(WTERMSIG(status)); }

int CodeOf(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Unread(status) ? kExitFailed : kExitLost;
}

std::string KilledLine(const LaunchedChild& child) {
  if (Unread(child.status)) return "the output of " + child.name + " was closed by its reader";
  const int signal = WTERMSIG(child.status);
  return "lost " + child.name + ": killed by signal " + std::to_string(signal) + " (" +
         strsignal(signal) + ")";
}

std::string StoppedLine(const LaunchedChild& child) {
  return "lost " + child.name + ": stopped by a signal for " + InSeconds(child.longest_stop) +
         " (process " + std::to_string(child.pid) + ")";
}

std::string LossLine(const LaunchedChild& child) {
  if (child.stopped_at) return StoppedLine(child);
  return WIFSIGNALED(child.status)
             ? KilledLine(child)
             : "lost " + child.name + ": it could not go on after the loss of another process";
}

}  // namespace troupe
