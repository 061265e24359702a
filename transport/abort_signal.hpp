// Ends every wait of a job at once. The first failure wins; every wait reports it.
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

/// Thrown out of a wait that a failure elsewhere has ended. Never the root cause.
struct Aborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thread-safe. One per job; everything that can block registers here.
class AbortSignal {
 public:
  AbortSignal();
  /// Records `failure` if it is the first, then calls every subscriber once, on this thread.
  void Raise(const Failure& failure);
  bool raised() const;
  /// Empty until raised.
  Failure failure() const;
  /// Its text.
  std::string cause() const;
  /// Throws Aborted with the cause when raised.
  void ThrowIfRaised() const;
  /// `wake` is called when the signal is raised, at once if it already is. It must not throw or
  /// call back into this object. The result unsubscribes when destroyed.
  [[nodiscard]] std::shared_ptr<void> Subscribe(OnFailure wake);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe
