#include "transport/started_operations.hpp"

#include <iterator>
#include <utility>

#include "transport/timed_wait.hpp"

namespace troupe {

StartedOperations::StartedOperations(std::vector<std::unique_ptr<Communicator>> groups, Clock clock)
    : groups_(std::move(groups)), clock_(clock), thread_([this] { Serve(); }) {}

StartedOperations::~StartedOperations() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

StartedOperations::Number StartedOperations::Start(std::size_t group, const Collective& mine) {
  Started started{group,
                  groups_[group]->CallerPoint(),
                  mine,
                  {mine.send_bytes.begin(), mine.send_bytes.end()},
                  {mine.receive_bytes.begin(), mine.receive_bytes.end()}};
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(started));
  }
  changed_.notify_all();
  return ++last_;
}

void StartedOperations::Wait(Number number) {
  const TimedWait timed;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return complete_ >= number || failure_; });
  if (complete_ < number) std::rethrow_exception(failure_);
  const auto next = queued_.upper_bound(number);
  if (next == queued_.begin()) return;
  const Queued last = std::prev(next)->second;  // it follows those before it
  queued_.erase(queued_.begin(), next);
  lock.unlock();
  groups_[last.group]->CallerFollows(last.after);
}

std::vector<OperationTimes> StartedOperations::TakeTimes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(times_, {});
}

void StartedOperations::Serve() {
  Communicator::Point last;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Started started = std::move(queue_.front());
    queue_.pop_front();
    started.call.send_bytes = started.send_bytes;
    started.call.receive_bytes = started.receive_bytes;
    lock.unlock();
    OperationTimes times{started.call.call.operation, clock_ ? clock_() : 0, 0};
    std::exception_ptr failure;
    try {
      last = groups_[started.group]->RunAfter({started.before, last}, started.call);
    } catch (...) {
      failure = std::current_exception();
    }
    times.end_ns = clock_ ? clock_() : 0;
    lock.lock();
    failure_ = failure;
    if (!failure) ++complete_;
    if (!failure && last) queued_[complete_] = {started.group, last};
    if (clock_) times_.push_back(times);
    changed_.notify_all();
    if (failure) return;
  }
}

}  // namespace troupe
