// The open messages of one member of a spanning group on the data plane, and its waits for them.
//
// The member waits for receives in batches. A receive is reserved in its batch as soon as it is
// known, and posted when its memory is free. After a failure nothing more is posted, and the plane
// fails the posted receives (once the job's signal is raised). Drain waits for that, so that the
// caller's memory is not written later.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/buffer.hpp"
#include "transport/data_plane.hpp"
#include "transport/spanning_group.hpp"

namespace troupe {

/// For one member's thread, except Wake. The plane's callbacks share ownership.
class OpenMessages : public std::enable_shared_from_this<OpenMessages> {
 public:
  using Batch = std::size_t;

  /// `unexpected` must throw. Waits call it on the member's thread when a message of
  /// ReceiveExpected has other bytes. Its argument is the index of that message, counted from
  /// Begin.
  OpenMessages(std::shared_ptr<const SpanningGroup> group, int member,
               std::function<void(std::size_t)> unexpected);

  /// Starts an operation, such as "all-reduce 52". Nothing may be open.
  void Begin(const std::string& operation);
  Batch NewBatch();

  /// Receives destination.num_bytes() from the process of member `from`; no-op for 0 bytes.
  void Receive(Batch batch, int from, Label label, const Buffer& destination);
  /// Receives a message that must have the bytes of `expected`.
  void ReceiveExpected(Batch batch, int from, Label label, const Buffer& destination,
                       const Buffer& expected);
  /// Sends `num_bytes` at `data`; no-op for 0 bytes. Messages of at most kCopiedBytes are copied,
  /// and their memory is free on return; that of others only after WaitForAll.
  void Send(int to, Label label, const std::byte* data, std::size_t num_bytes);
  /// Sends `memory`, and receives into it as soon as it is free.
  void SendThenReceive(Batch batch, int peer, Label sent, Label received, std::byte* memory,
                       std::size_t num_bytes);

  /// Waits for all receives of a batch. All waits throw Aborted if the job's signal is raised, and
  /// std::runtime_error with the plane's error text if the plane fails otherwise.
  void Wait(Batch batch);
  /// Waits for all receives and until the memory of all sends is free.
  void WaitForAll();

  /// After a failure, with the signal raised: waits until the plane no longer writes to the memory
  /// of any receive.
  void Drain();
  /// Makes the wait in progress check the signal. Thread-safe.
  void Wake();

  static constexpr std::size_t kCopiedBytes = 8192;

 private:
  template <class Ready>
  void WaitUntil(Ready ready);
  void Reserve(Batch batch, int from);
  void Post(Batch batch, int from, Label label, const Buffer& destination,
            std::function<void()> check = {});
  void Arrived(Batch batch, int from);
  /// Wakes the member if its wait is over. Requires mutex_.
  void WakeIfOver();
  void Failed(const std::string& error);
  ActorWaits DescribeWait() const;

  const std::shared_ptr<const SpanningGroup> group_;
  const int member_;
  const std::function<void(std::size_t)> unexpected_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::string operation_;
  std::vector<int> open_;           // by batch: receives reserved and not arrived
  std::vector<int> open_receives_;  // the same, by member
  std::vector<int> open_sends_;     // by member: sends whose memory is in use
  int num_receives_ = 0;            // sum of open_receives_
  int num_sends_ = 0;
  int num_posted_ = 0;                           // receives the plane may still write
  std::size_t num_expected_ = 0;                 // number of ReceiveExpected since Begin
  std::optional<std::size_t> unexpected_index_;  // of the first with other bytes
  bool closed_ = false;                          // post nothing more
  std::string error_;                            // of the first failed receive
  std::function<bool()> over_;                   // end condition of the wait in progress
};

}  // namespace troupe
