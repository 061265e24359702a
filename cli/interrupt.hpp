// Ctrl-C, SIGTERM and a terminal that hangs up: the first asks for an orderly end, the second ends
// at once. SIGUSR1 asks what everybody waits for, and ends nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// While it lives, SIGINT, SIGTERM and (unless it was ignored at the start) SIGHUP are told on a
/// thread of its own. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Called with the signal's number for each that comes, SIGUSR1 among them, on the thread; at
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
