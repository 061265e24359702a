#include "transport/abort_signal.hpp"

#include <atomic>
#include <stop_token>
#include <utility>

namespace troupe {

struct AbortSignal::State {
  std::mutex mutex;  // orders concurrent calls of Raise
  Failure failure;   // written once, before `raised`
  std::atomic<bool> raised = false;
  // Calls each subscriber once. A subscriber that is destroyed waits for its call in progress,
  // unless it is destroyed inside that call.
  std::stop_source stop;
};

AbortSignal::AbortSignal() : state_(std::make_shared<State>()) {}

void AbortSignal::Raise(const Failure& failure) {
  const std::shared_ptr<State> state = state_;  // a subscriber may destroy this object
  {
    const std::lock_guard lock(state->mutex);
    if (state->raised) return;
    state->failure = failure;
    state->raised = true;
  }
  state->stop.request_stop();
}

bool AbortSignal::raised() const { return state_->raised; }

Failure AbortSignal::failure() const { return raised() ? state_->failure : Failure(); }

std::string AbortSignal::cause() const { return failure().text; }

void AbortSignal::ThrowIfRaised() const {
  if (raised()) throw Aborted(state_->failure.text);
}

std::shared_ptr<void> AbortSignal::Subscribe(OnFailure wake) {
  struct Subscription {
    Subscription(std::shared_ptr<State> signal, std::shared_ptr<const OnFailure> wake)
        : state(std::move(signal)),
          callback(state->stop.get_token(), [raw = state.get(), wake = std::move(wake)] {
            // Keeps the callback, which may end the subscription.
            // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
            const std::shared_ptr<const OnFailure> running = wake;
            (*running)(raw->failure);
          }) {}
    std::shared_ptr<State> state;
    std::stop_callback<std::function<void()>> callback;
  };
  return std::make_shared<Subscription>(state_, std::make_shared<const OnFailure>(std::move(wake)));
}

}  // namespace troupe
