#include "app/interrupt.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe {
namespace {

/// The write end of the pipe; -1 while there is no Interrupt. A signal handler gets no arguments, so
/// it is global. Signals cannot be blocked and waited for instead: libraries start threads before
/// main().
std::atomic<int> handler_pipe = -1;

/// Whether SIGHUP was ignored when the program started.
bool hangup_was_ignored = false;

/// Runs before the libraries start, which takes most of a second before main().
void AtStart(int, char**, char**) {
  // UCX installs a handler for SIGHUP when it is loaded, which would undo nohup.
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  hangup_was_ignored = hangup.sa_handler == SIG_IGN;
  // A signal that asks a job for something must not end one that does not listen yet. A launcher
  // starts its children with these blocked until this point.
  sigset_t asking;
  sigemptyset(&asking);
  for (const int signal : kAskSignals) {
    std::signal(signal, SIG_IGN);
    sigaddset(&asking, signal);
  }
  sigprocmask(SIG_UNBLOCK, &asking, nullptr);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const kAtStart)(int, char**, char**) = AtStart;

void Handle(int signal) {
  const int kept = errno;
  const auto byte = static_cast<unsigned char>(signal);
  static_cast<void>(!write(handler_pipe.load(), &byte, 1));
  errno = kept;
}

}  // namespace

struct Interrupt::State {
  std::array<int, 2> pipe{-1, -1};
  std::map<int, struct sigaction> before;  ///< actions to restore, by signal
  std::atomic<int> first = 0;
  std::mutex mutex;
  std::function<void(int)> call;
  std::vector<int> waiting;  ///< signals that arrived before a callback was set
  std::thread thread;

  void Loop() {
    unsigned char byte = 0;
    EndRequests requests;
    while (true) {
      const ssize_t got = read(pipe[0], &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got != 1 || byte == 0) return;
      const bool ends = EndsJob(byte);
      if (ends && !requests.IsNew(std::chrono::steady_clock::now())) continue;
      int none = 0;
      if (ends) first.compare_exchange_strong(none, byte);
      const std::lock_guard lock(mutex);
      if (call) {
        call(byte);
      } else if (ends) {
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
  for (const int signal : kAskSignals) sigaction(signal, &action, &state_->before[signal]);
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : kEndSignals) {
    // A closed terminal ends a job in order, unless the job was started with nohup.
    action.sa_handler = signal == SIGHUP && hangup_was_ignored ? SIG_IGN : Handle;
    sigaction(signal, &action, &state_->before[signal]);
    sigaddset(&ending, signal);
  }
  // A launcher has blocked them in a process of a job that has begun.
  pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
  state_->thread = std::thread([state = state_.get()] { state->Loop(); });
}

Interrupt::~Interrupt() {
  for (const auto& [signal, action] : state_->before) sigaction(signal, &action, nullptr);
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
