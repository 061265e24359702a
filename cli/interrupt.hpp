// Ctrl-C, SIGTERM and a terminal that hangs up: the first request asks for an orderly end, the
// second ends at once. SIGUSR1 asks for the list of waits and ends nothing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// Tells requests to end from echoes. One Ctrl-C may arrive more than once: from the terminal and
/// from a launcher, or, when a terminal is gone, from the system and from the shell.
class EndRequests {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Signals that come within this time of the first are the same request.
  static constexpr std::chrono::milliseconds kOneRequest{500};

  /// Whether a signal that arrives at `now` is a new request, not an echo of the first.
  bool IsNew(Time now) {
    if (first_ && now - *first_ < kOneRequest) return false;
    if (!first_) first_ = now;
    return true;
  }

 private:
  std::optional<Time> first_;
};

/// While it lives, SIGINT, SIGTERM and (unless it was ignored at the start) SIGHUP are told on a
/// thread of its own. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Called with the signal's number for each request to end and each SIGUSR1, on the thread; at
  /// once if one has come.
  /// May be called once more with nullptr, to be told no more.
  void OnSignal(std::function<void(int signal)> call);
  /// The first that came and asked for an end, 0 if none.
  int signal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
