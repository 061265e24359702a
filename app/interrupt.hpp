// Ctrl-C, SIGTERM and a terminal that hangs up: the first request asks for an orderly end, the
// second ends at once. SIGUSR1 asks for the list of waits and SIGUSR2 for a checkpoint; they end
// nothing.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// Printed by process 0 at a request for a checkpoint.
inline constexpr const char* kSavingLine = "writing a checkpoint after the step under way\n";

/// Printed at the first request to end a training, and at the second.
inline constexpr const char* kFinishingLine =
    "finishing the step under way; once more ends at once\n";
inline constexpr const char* kEndedAtOnceLine = "ended at once: what was not saved yet is lost\n";

/// Signals that ask a job to end.
inline constexpr std::array kEndSignals = {SIGINT, SIGTERM, SIGHUP};
/// Signals that ask a job for something.
inline constexpr std::array kAskSignals = {SIGUSR1, SIGUSR2};

inline bool EndsJob(int signal) {
  return std::ranges::find(kEndSignals, signal) != kEndSignals.end();
}

/// Separates requests to end from their echoes. One Ctrl-C may arrive more than once: from the
/// terminal and from a launcher, or, when a terminal is closed, from the system and from the shell.
class EndRequests {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Signals that come within this time of the first are the same request.
  static constexpr std::chrono::milliseconds kOneRequest{500};

  /// Returns whether a signal that arrives at `now` is a new request, not an echo of the first.
  bool IsNew(Time now) {
    if (first_ && now - *first_ < kOneRequest) return false;
    if (!first_) first_ = now;
    return true;
  }

 private:
  std::optional<Time> first_;
};

/// Handles SIGINT, SIGTERM, SIGUSR1, SIGUSR2 and (unless it was ignored at the start) SIGHUP on a separate
/// thread while it lives. At most one object may exist at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Calls `call` with the signal's number for each request to end and each other, on the thread;
  /// immediately for signals that have arrived. nullptr removes the callback.
  void OnSignal(std::function<void(int signal)> call);
  /// The first signal that requested an end; 0 if none has.
  int signal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
