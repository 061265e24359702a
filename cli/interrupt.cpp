#include "cli/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {
namespace {

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

struct Interrupt::State {
  std::atomic<bool> stop = false;
  std::atomic<int> first = 0;
  std::mutex mutex;
  std::function<void(int)> call;
  std::vector<int> waiting;  ///< came before there was somebody to tell
  sigset_t before{};
  std::thread thread;

  void Loop() {
    const sigset_t set = Signals();
    while (!stop) {
      const timespec interval{0, 100'000'000};
      const int signal = sigtimedwait(&set, nullptr, &interval);
      if (signal <= 0) continue;
      int none = 0;
      first.compare_exchange_strong(none, signal);
      const std::lock_guard lock(mutex);
      if (call) {
        call(signal);
      } else {
        waiting.push_back(signal);
      }
    }
  }
};

Interrupt::Interrupt() : state_(std::make_unique<State>()) {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, &state_->before);
  state_->thread = std::thread([state = state_.get()] { state->Loop(); });
}

Interrupt::~Interrupt() {
  state_->stop = true;
  state_->thread.join();
  pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
}

void Interrupt::OnSignal(std::function<void(int)> call) {
  const std::lock_guard lock(state_->mutex);
  state_->call = std::move(call);
  if (!state_->call) return;
  for (const int signal : std::exchange(state_->waiting, {})) state_->call(signal);
}

int Interrupt::signal() const { return state_->first; }

void UnblockSignals() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace troupe
