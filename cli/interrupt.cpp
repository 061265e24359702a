#include "cli/interrupt.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe {
namespace {

/// Where the handler writes: a handler has no other way to know. -1 while nobody listens. (Blocking
/// the signals and waiting for them would not do: libraries have started threads before us.)
std::atomic<int> handler_pipe = -1;

void Handle(int signal) {
  const int kept = errno;
  const auto byte = static_cast<unsigned char>(signal);
  static_cast<void>(!write(handler_pipe.load(), &byte, 1));
  errno = kept;
}

}  // namespace

struct Interrupt::State {
  std::array<int, 2> pipe{-1, -1};
  struct sigaction before_int {};
  struct sigaction before_term {};
  std::atomic<int> first = 0;
  std::mutex mutex;
  std::function<void(int)> call;
  std::vector<int> waiting;  ///< came before there was somebody to tell
  std::thread thread;

  void Loop() {
    unsigned char byte = 0;
    while (true) {
      const ssize_t got = read(pipe[0], &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1 || byte == 0) return;
      int none = 0;
      first.compare_exchange_strong(none, byte);
      const std::lock_guard lock(mutex);
      if (call) {
        call(byte);
      } else {
        waiting.push_back(byte);
      }
    }
  }
};

Interrupt::Interrupt() : state_(std::make_unique<State>()) {
  if (pipe2(state_->pipe.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  handler_pipe = state_->pipe[1];
  struct sigaction action {};
  action.sa_handler = Handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &state_->before_int);
  sigaction(SIGTERM, &action, &state_->before_term);
  state_->thread = std::thread([state = state_.get()] { state->Loop(); });
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &state_->before_int, nullptr);
  sigaction(SIGTERM, &state_->before_term, nullptr);
  const unsigned char end = 0;
  static_cast<void>(!write(state_->pipe[1], &end, 1));
  state_->thread.join();
  handler_pipe = -1;
  close(state_->pipe[0]);
  close(state_->pipe[1]);
}

void Interrupt::OnSignal(std::function<void(int)> call) {
  const std::lock_guard lock(state_->mutex);
  state_->call = std::move(call);
  if (!state_->call) return;
  for (const int signal : std::exchange(state_->waiting, {})) state_->call(signal);
}

int Interrupt::signal() const { return state_->first; }

}  // namespace troupe
