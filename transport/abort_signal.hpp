// Ends every wait of a job at once: the first cause wins, and it is what everybody reports.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// Thrown out of a wait that the failure of somebody else ended. Never the root cause.
struct Aborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thread-safe. One per job; everything that can block registers here.
class AbortSignal {
 public:
  AbortSignal();
  /// Records `cause` if it is the first, then calls every subscriber once, on this thread.
  void Raise(const std::string& cause);
  bool raised() const;
  /// Empty until raised.
  std::string cause() const;
  /// Throws Aborted with the cause when raised.
  void ThrowIfRaised() const;
  /// `wake` is called when the signal is raised, at once if it already is. It must not throw or
  /// call back into this object. The result unsubscribes when destroyed.
  [[nodiscard]] std::shared_ptr<void> Subscribe(std::function<void(const std::string& cause)> wake);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe
