// Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends at once.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// While it lives, SIGINT and SIGTERM are taken by a thread of its own. Threads that are started
/// later inherit that; so make it before them, in main's thread.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Called with the signal's number for each that comes, on the thread; at once if one has come.
  void OnSignal(std::function<void(int signal)> call);
  /// The first that came, 0 if none.
  int signal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// In a program that was started by `troupe`: signals are taken as by anybody else again.
void UnblockSignals();

}  // namespace troupe
