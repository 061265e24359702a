#include "transport/started_group.hpp"

#include <utility>

namespace troupe {

StartedGroup::StartedGroup(std::unique_ptr<Communicator> group)
    : group_(std::move(group)), thread_([this] { Serve(); }) {}

StartedGroup::~StartedGroup() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

StartedGroup::Number StartedGroup::Start(const Collective& mine) {
  Started started{mine,
                  {mine.send_bytes.begin(), mine.send_bytes.end()},
                  {mine.receive_bytes.begin(), mine.receive_bytes.end()}};
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(started));
  }
  changed_.notify_all();
  return ++last_;
}

void StartedGroup::Wait(Number number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return complete_ >= number || failure_; });
  if (complete_ < number) std::rethrow_exception(failure_);
}

void StartedGroup::Serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    if (closed_) return;
    Started started = std::move(queue_.front());
    queue_.pop_front();
    started.call.send_bytes = started.send_bytes;
    started.call.receive_bytes = started.receive_bytes;
    lock.unlock();
    std::exception_ptr failure;
    try {
      group_->Run(started.call);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    if (!failure) ++complete_;
    changed_.notify_all();
    if (failure) return;
  }
}

}  // namespace troupe
