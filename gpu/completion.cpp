#include "gpu/completion.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/check.hpp"

namespace troupe::gpu {

struct Completions::Ticket {
  std::shared_ptr<State> state;
  std::function<void(const std::string&)> done;
};

struct Completions::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  std::deque<Ticket*> open;  // oldest first
  // Completed by the watcher. Kept, since the driver may still refer to them.
  std::vector<std::unique_ptr<Ticket>> abandoned;

  /// True for exactly one caller, which then calls `done`.
  bool Take(Ticket* ticket) {
    const std::lock_guard lock(mutex);
    return std::erase(open, ticket) == 1;
  }

  void FailAll(const std::string& error) {
    for (;;) {
      std::function<void(const std::string&)> done;
      {
        const std::lock_guard lock(mutex);
        if (open.empty()) return;
        abandoned.emplace_back(open.front());
        open.pop_front();
        done = std::move(abandoned.back()->done);
      }
      done(error);
    }
  }
};

Completions::Completions(int device)
    : state_(std::make_shared<State>()),
      stream_(device),
      event_(device),
      watcher_([this] { Watch(); }) {}

Completions::~Completions() {
  const cudaError_t code = cudaStreamSynchronize(stream_.get());
  if (code != cudaSuccess) state_->FailAll(ErrorText("cudaStreamSynchronize", code));
  {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
  }
  state_->changed.notify_all();
  watcher_.join();
  std::vector<std::unique_ptr<Ticket>> abandoned;  // each refers to the state
  const std::lock_guard lock(state_->mutex);
  abandoned.swap(state_->abandoned);
}

void Completions::Notify(const Stream& stream, std::function<void(const std::string&)> done) {
  event_.Record(stream);
  stream_.Wait(event_);
  std::unique_ptr<Ticket> ticket(new Ticket{state_, std::move(done)});
  {
    const std::lock_guard lock(state_->mutex);
    state_->open.push_back(ticket.get());
  }
  const auto call = [](void* mine) {
    auto* const given = static_cast<Ticket*>(mine);
    if (!given->state->Take(given)) return;  // the watcher was faster and keeps it
    const std::unique_ptr<Ticket> owned(given);
    owned->done({});
  };
  const cudaError_t code = cudaLaunchHostFunc(stream_.get(), call, ticket.get());
  if (code != cudaSuccess && state_->Take(ticket.get())) Check(code, "cudaLaunchHostFunc");
  static_cast<void>(ticket.release());  // owned by the driver, or abandoned
  state_->changed.notify_all();
}

void Completions::Drain() const { stream_.Synchronize(); }

void Completions::Watch() {
  std::unique_lock lock(state_->mutex);
  for (;;) {
    state_->changed.wait(lock, [this] { return state_->ended || !state_->open.empty(); });
    if (state_->ended) return;
    if (state_->changed.wait_for(lock, kPollInterval, [this] { return state_->ended; })) return;
    lock.unlock();
    const cudaError_t code = cudaStreamQuery(stream_.get());
    if (code != cudaSuccess && code != cudaErrorNotReady)
      state_->FailAll(ErrorText("cudaStreamQuery", code));
    lock.lock();
  }
}

}  // namespace troupe::gpu
