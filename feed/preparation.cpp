#include "feed/preparation.hpp"

#include <exception>

#include "cluster/signals_blocked.hpp"
#include "trace/clock.hpp"

namespace troupe {

Preparation::Preparation(const InputSource& source, int threads, WakeUp& wake_up)
    : source_(source), wake_up_(wake_up) {
  const SignalsBlocked blocked;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Preparation::~Preparation() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Preparation::Add(std::int64_t link, const FeedOrder& order) {
  {
    const std::lock_guard lock(mutex_);
    tasks_[{order.microbatch, num_tasks_++}] = {link, order, NowNs()};
  }
  more_.notify_one();
}

void Preparation::Drop(std::int64_t link) {
  const std::lock_guard lock(mutex_);
  std::erase_if(tasks_, [link](const auto& entry) { return entry.second.link == link; });
}

std::deque<Preparation::Outcome> Preparation::TakeOutcomes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

bool Preparation::IsIdle() {
  const std::lock_guard lock(mutex_);
  tasks_.clear();
  return num_busy_ == 0;
}

void Preparation::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    more_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (ends_) return;
    const Task task = tasks_.extract(tasks_.begin()).mapped();
    ++num_busy_;
    lock.unlock();
    Outcome outcome = Do(task);
    lock.lock();
    --num_busy_;
    outcomes_.push_back(std::move(outcome));
    wake_up_.Signal();
  }
}

Preparation::Outcome Preparation::Do(const Task& task) const {
  Prepared prepared;
  FeedSample& header = prepared.header;
  header.number = task.order.number;
  std::int64_t begin_ns = NowNs();
  header.queued_ns = begin_ns - task.asked_ns;
  const auto lap = [&begin_ns] {
    const std::int64_t now_ns = NowNs();
    return now_ns - std::exchange(begin_ns, now_ns);
  };
  try {
    const auto work = source_.Begin(task.order.ticket);
    work->Read();
    header.read_ns = lap();
    work->Tokenize();
    header.tokenize_ns = lap();
    prepared.sample = work->Decode();
    header.decode_ns = lap();
  } catch (const std::exception& e) {
    return {task.link, FeedFailure{header.number, e.what()}};
  }
  header.size = static_cast<std::int64_t>(prepared.sample.num_bytes());
  return {task.link, std::move(prepared)};
}

}  // namespace troupe
