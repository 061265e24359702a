#include "transport/open_messages.hpp"

#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

// Longer waits are reported. Most waits are shorter and never pay for the text.
constexpr std::chrono::milliseconds kShortWait{200};

// The time limit of Drain. A plane that takes longer has lost its thread, and a longer wait would
// only hide the cause of the job's end.
constexpr std::chrono::seconds kDrainTime{10};

}  // namespace

OpenMessages::OpenMessages(std::shared_ptr<const SpanningGroup> group, int member,
                           std::function<void(std::size_t)> unexpected)
    : group_(std::move(group)),
      member_(member),
      unexpected_(std::move(unexpected)),
      open_receives_(group_->homes.size()),
      open_sends_(group_->homes.size()) {}

void OpenMessages::Begin(const std::string& operation) {
  const std::lock_guard lock(mutex_);
  operation_ = operation + " of " + group_->name;
  open_.clear();
  num_expected_ = 0;
}

OpenMessages::Batch OpenMessages::NewBatch() {
  const std::lock_guard lock(mutex_);
  open_.push_back(0);
  return open_.size() - 1;
}

void OpenMessages::Reserve(Batch batch, int from) {
  const std::lock_guard lock(mutex_);
  ++open_[batch];
  ++open_receives_[static_cast<std::size_t>(from)];
  ++num_receives_;
}

void OpenMessages::Receive(Batch batch, int from, Label label, const Buffer& destination) {
  if (destination.num_bytes() == 0) return;
  Reserve(batch, from);
  Post(batch, from, label, destination);
}

void OpenMessages::ReceiveExpected(Batch batch, int from, Label label, const Buffer& destination,
                                   const Buffer& expected) {
  Reserve(batch, from);
  Post(batch, from, label, destination, [this, index = num_expected_++, destination, expected] {
    if (std::memcmp(destination.data(), expected.data(), expected.num_bytes()) == 0) return;
    const std::lock_guard lock(mutex_);
    if (!unexpected_index_) unexpected_index_ = index;
  });
}

void OpenMessages::Send(int to, Label label, const std::byte* data, std::size_t num_bytes) {
  if (num_bytes == 0) return;
  if (num_bytes <= kCopiedBytes) {
    Buffer copy = Buffer::AllocateBytes(num_bytes);
    std::memcpy(copy.data(), data, num_bytes);
    group_->plane->Send(group_->home(to), label, std::move(copy), {});
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ++open_sends_[static_cast<std::size_t>(to)];
    ++num_sends_;
  }
  group_->plane->Send(group_->home(to), label,
                      Buffer::WrapBytes(const_cast<std::byte*>(data), num_bytes),
                      [self = shared_from_this(), to] {
                        const std::lock_guard lock(self->mutex_);
                        --self->open_sends_[static_cast<std::size_t>(to)];
                        --self->num_sends_;
                        self->WakeIfOver();
                      });
}

void OpenMessages::SendThenReceive(Batch batch, int peer, Label sent, Label received,
                                   std::byte* memory, std::size_t num_bytes) {
  if (num_bytes == 0) return;
  Reserve(batch, peer);
  if (num_bytes <= kCopiedBytes) {
    Send(peer, sent, memory, num_bytes);
    Post(batch, peer, received, Buffer::WrapBytes(memory, num_bytes));
    return;
  }
  // The receive is reserved already, so the send need not be counted.
  group_->plane->Send(group_->home(peer), sent, Buffer::WrapBytes(memory, num_bytes),
                      [self = shared_from_this(), batch, peer, received, memory, num_bytes] {
                        self->Post(batch, peer, received, Buffer::WrapBytes(memory, num_bytes));
                      });
}

void OpenMessages::Post(Batch batch, int from, Label label, const Buffer& destination,
                        std::function<void()> check) {
  std::string message;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    ++num_posted_;
    message = operation_ + ", message from " + group_->Describe(from);
  }
  try {
    group_->plane->Receive(
        {group_->home(from), label, destination, std::move(message),
         [self = shared_from_this(), batch, from, check = std::move(check)] {
           if (check) check();
           self->Arrived(batch, from);
         },
         [self = shared_from_this()](const Failure& failure) { self->Failed(failure.text); }});
  } catch (const std::exception& error) {
    Failed(error.what());  // no exception may reach the plane's thread
  }
}

void OpenMessages::Arrived(Batch batch, int from) {
  const std::lock_guard lock(mutex_);
  --num_posted_;
  --num_receives_;
  --open_receives_[static_cast<std::size_t>(from)];
  --open_[batch];
  WakeIfOver();
}

void OpenMessages::WakeIfOver() {
  if (over_ && over_()) changed_.notify_all();
}

void OpenMessages::Failed(const std::string& error) {
  const std::lock_guard lock(mutex_);
  --num_posted_;
  if (error_.empty()) error_ = error.empty() ? "the data plane failed" : error;
  changed_.notify_all();
}

template <class Ready>
void OpenMessages::WaitUntil(Ready ready) {
  std::unique_lock lock(mutex_);
  over_ = [this, ready] {
    return ready() || unexpected_index_ || !error_.empty() || group_->abort->raised();
  };
  // Only long waits are reported: most are short, and the text would cost more than the wait.
  if (!changed_.wait_for(lock, kShortWait, over_)) {
    if (group_->names.waits == nullptr) changed_.wait(lock, over_);
    std::unique_ptr<WaitNote> note;
    while (!over_()) {
      // The new note exists before the old one is destroyed, so that readers always see one.
      note = std::make_unique<WaitNote>(*group_->names.waits, DescribeWait());
      changed_.wait_for(lock, kShortWait, over_);
    }
  }
  over_ = nullptr;
  const std::optional<std::size_t> unexpected_index = unexpected_index_;
  const std::string error = error_;
  const bool arrived = ready();
  lock.unlock();
  if (unexpected_index) unexpected_(*unexpected_index);
  if (arrived) return;
  group_->abort->ThrowIfRaised();
  throw std::runtime_error(error);
}

void OpenMessages::Wait(Batch batch) {
  WaitUntil([this, batch] { return open_[batch] == 0; });
}

void OpenMessages::WaitForAll() {
  WaitUntil([this] { return num_receives_ == 0 && num_sends_ == 0; });
}

ActorWaits OpenMessages::DescribeWait() const {
  ActorWaits waiting;
  waiting.who = group_->names.MemberName(member_);
  const auto add = [&](const std::string& name, int member) {
    waiting.waits.push_back({.what = name, .whom = group_->names.MemberName(member)});
  };
  for (int member = 0; member < group_->size(); ++member) {
    if (open_receives_[static_cast<std::size_t>(member)] > 0) add(operation_, member);
  }
  if (!waiting.waits.empty()) return waiting;
  for (int member = 0; member < group_->size(); ++member) {
    if (open_sends_[static_cast<std::size_t>(member)] > 0) {
      add("receipt of its message in " + operation_, member);
    }
  }
  return waiting;
}

void OpenMessages::Drain() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  over_ = [this] { return num_posted_ == 0; };
  changed_.wait_for(lock, kDrainTime, over_);
  over_ = nullptr;
}

void OpenMessages::Wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace troupe
