#include "transport/local_channel.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>

namespace troupe {
namespace {

template <class Pending>
auto Find(Pending& pending, Tag tag) {
  return std::find_if(pending.begin(), pending.end(),
                      [tag](const auto& entry) { return entry.tag == tag; });
}

std::string Describe(const Buffer& buffer) {
  return ToString(buffer.dtype()) + " " + ToString(buffer.shape());
}

bool SameType(const Buffer& a, const Buffer& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

/// Nothing to do if both are the same memory, as when a ring of stages recycles its buffers.
void CopyBytes(const Buffer& from, const Buffer& to) {
  if (from.data() != to.data()) std::memcpy(to.data(), from.data(), from.num_bytes());
}

}  // namespace

void LocalChannel::Send(PendingSend&& send) {
  if (Find(sends_, send.tag) != sends_.end())
    throw std::invalid_argument(Describe(send.tag) + ": a send of this tag is still open");
  const auto receive = Find(receives_, send.tag);
  if (receive == receives_.end()) {
    sends_.push_back(std::move(send));
    return Admit();
  }
  PendingReceive taken = std::move(*receive);
  receives_.erase(receive);
  Deliver(std::move(send), std::move(taken));
}

void LocalChannel::Receive(PendingReceive&& receive) {
  if (Find(receives_, receive.tag) != receives_.end())
    throw std::invalid_argument(Describe(receive.tag) + ": a receive of this tag is still open");
  const auto send = Find(sends_, receive.tag);
  if (send == sends_.end()) {
    receives_.push_back(std::move(receive));
    return;
  }
  PendingSend taken = std::move(*send);
  sends_.erase(send);
  if (taken.kept) --num_kept_;
  Deliver(std::move(taken), std::move(receive));
  Admit();
}

void LocalChannel::Deliver(PendingSend send, PendingReceive receive) {
  completions.push_back(
      [what = Describe(send.tag), send = std::move(send), receive = std::move(receive)]() mutable {
        std::string error;
        if (receive.destination.defined()) {
          if (SameType(send.buffer, receive.destination)) {
            CopyBytes(send.buffer, receive.destination);
          } else {
            error = what + ": expected " + troupe::Describe(receive.destination) + ", got " +
                    troupe::Describe(send.buffer);
          }
          send.buffer = Buffer();
        } else {
          receive.destination = std::exchange(send.buffer, Buffer());
        }
        if (!send.kept && send.sent) send.sent();
        if (error.empty()) {
          receive.received(std::move(receive.destination));
        } else {
          receive.failed(error);
        }
      });
}

void LocalChannel::Admit() {
  for (auto send = sends_.begin() + num_kept_; send != sends_.end() && num_kept_ < capacity_;
       ++send, ++num_kept_) {
    send->kept = true;
    if (send->sent) completions.push_back(std::exchange(send->sent, nullptr));
  }
}

void LocalChannel::CloseSource() {
  DropSends(/*kept=*/false);
  for (PendingReceive& receive : std::exchange(receives_, {})) {
    std::string error = Describe(receive.tag) + ": the sender closed before it sent";
    completions.push_back([receive = std::move(receive), error] { receive.failed(error); });
  }
}

void LocalChannel::CloseDestination() {
  DropSends(/*kept=*/true);
  for (PendingReceive& receive : std::exchange(receives_, {})) {
    std::string error = Describe(receive.tag) + ": the receiver closed before it came";
    completions.push_back([receive = std::move(receive), error] { receive.failed(error); });
  }
  Admit();
}

void LocalChannel::Fail(const std::string& error) {
  DropSends(/*kept=*/true);
  DropSends(/*kept=*/false);
  for (PendingReceive& receive : std::exchange(receives_, {}))
    completions.push_back([receive = std::move(receive), error] { receive.failed(error); });
}

void LocalChannel::DropSends(bool kept) {
  const auto waiting = sends_.begin() + num_kept_;
  const auto begin = kept ? sends_.begin() : waiting;
  const auto end = kept ? waiting : sends_.end();
  // Released with the completion: the owner of the memory may do anything when it goes.
  std::vector<PendingSend> dropped(std::make_move_iterator(begin), std::make_move_iterator(end));
  if (!dropped.empty()) completions.push_back([dropped = std::move(dropped)] {});
  sends_.erase(begin, end);
  if (kept) num_kept_ = 0;
}

std::string LocalChannel::Describe(Tag tag) const {
  return "tag " + std::to_string(tag) + " from \"" + source_ + "\" to \"" + destination_ + "\"";
}

}  // namespace troupe
