// A result that another thread delivers.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "transport/abort_signal.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// Copies share the result. They may outlive Wait: a result that comes after an abort is dropped.
template <class Result>
class Awaited {
 public:
  // On any thread, once.

  void Deliver(Result result) const {
    Change([&](State& state) { state.result = std::move(result); });
  }
  void Fail(const Failure& failure) const {
    Change([&](State& state) { state.failure = failure; });
  }

  /// Blocks until one of them is called, or the job fails. Throws FailureError, or Aborted if the job
  /// has failed.
  Result Wait(AbortSignal& abort) const {
    const auto subscription = abort.Subscribe([awaited = *this](const Failure&) {
      awaited.Change([](State& state) { state.aborted = true; });
    });
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock,
                         [this] { return state_->aborted || state_->result || state_->failure; });
    if (state_->result) return *std::move(state_->result);
    abort.ThrowIfRaised();
    throw FailureError(state_->failure->text, state_->failure->kind);
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool aborted = false;
    std::optional<Result> result;
    std::optional<Failure> failure;
  };

  template <class Function>
  void Change(Function change) const {
    {
      const std::lock_guard lock(state_->mutex);
      change(*state_);
    }
    state_->changed.notify_all();
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace troupe
