// One direction between two endpoints of one process: what was sent, what is awaited, and what
// remains to be told to whom.
//
//   a send     is delivered if a receive of its tag waits; else kept while fewer than `capacity`
//              are, and then its `sent` is called; else it waits
//   a receive  takes the send of its tag, kept or waiting; else it waits
//
// Work that takes time or runs foreign code (copies, callbacks, the release of memory) is returned
// as completions, for the caller to run in order without holding a lock.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "transport/buffer.hpp"
#include "transport/endpoint.hpp"

namespace troupe {

struct PendingSend {
  Tag tag = 0;
  Buffer buffer;
  std::function<void()> sent;
  bool kept = false;  ///< `sent` has been called
};

struct PendingReceive {
  Tag tag = 0;
  Buffer destination;
  std::function<void(Buffer)> received;
  std::function<void(const std::string& error)> failed;
};

/// Not thread-safe: guarded by the lock of the transport.
class LocalChannel {
 public:
  LocalChannel(EndpointName source, EndpointName destination, int capacity)
      : source_(std::move(source)), destination_(std::move(destination)), capacity_(capacity) {}

  const EndpointName& source() const { return source_; }
  const EndpointName& destination() const { return destination_; }

  /// Throws std::invalid_argument, and takes nothing, if a send of the same tag is open.
  void Send(PendingSend&& send);
  /// Likewise for receives.
  void Receive(PendingReceive&& receive);
  /// The source closed: what it had not sent is dropped, receives that wait for it fail.
  void CloseSource();
  /// The destination closed: what it had not received is dropped, its receives fail.
  void CloseDestination();
  /// Everything open ends; receives fail with `error`.
  void Fail(const std::string& error);

  /// What remains to be done, oldest first; and whether a thread is doing it.
  std::deque<std::function<void()>> completions;
  bool draining = false;

 private:
  void Deliver(PendingSend send, PendingReceive receive);
  /// Keeps the oldest sends that wait, as far as there is room.
  void Admit();
  void DropSends(bool kept);
  std::string Describe(Tag tag) const;

  const EndpointName source_;
  const EndpointName destination_;
  const int capacity_;
  int num_kept_ = 0;
  std::deque<PendingSend> sends_;  // in the order given: the kept ones come first
  std::vector<PendingReceive> receives_;
};

}  // namespace troupe
