#include "transport/pump.hpp"

#include <algorithm>
#include <exception>
#include <poll.h>
#include <utility>

namespace troupe {

void Pump::Start(Hooks hooks) {
  hooks_ = std::move(hooks);
  thread_ = std::thread([this] { Run(); });
}

bool Pump::Post(Command command) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  commands_.push_back(std::move(command));
  // After the push, so that no wake-up is lost; under the lock, so that the worker still exists.
  // One signal is enough for all commands taken together, and the thread itself checks before it
  // sleeps.
  if (commands_.size() == 1 && !OnThread()) worker_.Signal();
  return true;
}

void Pump::Stop() {
  if (!thread_.joinable()) return;  // the worker may already be destroyed
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    worker_.Signal();
  }
  thread_.join();
}

void Pump::Run() {
  id_ = std::this_thread::get_id();
  try {
    Loop();
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    hooks_.died(error.what());
  }
}

void Pump::Loop() {
  const int descriptor = worker_.EventDescriptor();
  Clock::time_point last = Clock::now();
  for (;;) {
    bool busy = RunCommands();
    busy |= worker_.Progress();
    const std::optional<Clock::time_point> until = hooks_.after_round();
    if (busy) {
      if (spin_.count() > 0) last = Clock::now();
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!commands_.empty()) continue;
      if (stopping_) return;
    }
    if (spin_.count() > 0 && Clock::now() - last < spin_) continue;
    // An earlier signal or event makes Arm fail; a later one ends the sleep.
    if (!worker_.Arm()) continue;
    Sleep(descriptor, until);
  }
}

bool Pump::RunCommands() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(commands_);
  }
  if (running_.empty()) return false;
  for (Command& command : running_) command();
  running_.clear();
  return true;
}

void Pump::Sleep(int descriptor, std::optional<Clock::time_point> until) {
  int timeout_ms = -1;
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
    timeout_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }
  pollfd event{descriptor, POLLIN, 0};
  ::poll(&event, 1, timeout_ms);  // timers of the worker also end it
}

}  // namespace troupe
