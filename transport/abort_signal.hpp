// Ends every wait of a job at once. The first failure wins, and every wait reports it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "transport/failure.hpp"

namespace troupe {

/// Thrown by a wait that a failure elsewhere has ended. Never the root cause.
struct Aborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thread-safe. One per job. Every wait registers here.
class AbortSignal {
 public:
  AbortSignal();
  /// Records `failure` if it is the first, then calls every subscriber once, on this thread.
  void Raise(const Failure& failure);
  bool raised() const;
  /// Empty until raised.
  Failure failure() const;
  /// The text of failure().
  std::string cause() const;
  /// Throws Aborted with the cause when raised.
  void ThrowIfRaised() const;
  /// Calls `wake` when the signal is raised, or at once if it already is. `wake` must not throw or
  /// call this object. Destroying the result unsubscribes.
  [[nodiscard]] std::shared_ptr<void> Subscribe(OnFailure wake);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe
