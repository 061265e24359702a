// The messages that one member of a spanning group has open on the data plane, and its sleep until
// they have arrived.
//
// Receives are counted in batches, which are what the member waits for. A receive is reserved in
// its batch as soon as it is known and posted when its memory is free. After a failure nothing more
// is posted, and the plane fails what is (once the job's signal is raised): Drain waits for that,
// so that nothing is written into the caller's memory later.
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

/// For one member's thread, except Wake. Callbacks of the plane share its ownership.
class OpenMessages : public std::enable_shared_from_this<OpenMessages> {
 public:
  using Batch = std::size_t;

  /// `unexpected` must throw: waits call it, on the member's thread, when a message to
  /// ReceiveExpected has other bytes. It says which of these messages, counted from Begin on.
  OpenMessages(std::shared_ptr<const SpanningGroup> group, int member,
               std::function<void(std::size_t)> unexpected);

  /// Begins an operation: "all-reduce 52". Nothing may be open.
  void Begin(const std::string& operation);
  Batch NewBatch();

  /// Receives destination.num_bytes() from the process of member `from`; nothing if that is 0.
  void Receive(Batch batch, int from, Label label, const Buffer& destination);
  /// Receives what should be the bytes of `expected`.
  void ReceiveExpected(Batch batch, int from, Label label, const Buffer& destination,
                       const Buffer& expected);
  /// Sends `num_bytes` at `data`; nothing if that is 0. Up to kCopiedBytes are copied, and the
  /// memory is free on return; else not before WaitForAll has returned.
  void Send(int to, Label label, const std::byte* data, std::size_t num_bytes);
  /// Sends from `memory`, and receives into it as soon as it is free.
  void SendThenReceive(Batch batch, int peer, Label sent, Label received, std::byte* memory,
                       std::size_t num_bytes);

  /// Waits until all receives of a batch have arrived. Waits throw Aborted when the job's signal is
  /// raised, and std::runtime_error with the plane's words when it fails without.
  void Wait(Batch batch);
  /// Waits for all receives and for the memory of all sends.
  void WaitForAll();

  /// After a failure and with the signal raised: waits until the plane has let go of all memory it
  /// would write to.
  void Drain();
  /// Has the wait in progress look at the signal. Thread-safe.
  void Wake();

  static constexpr std::size_t kCopiedBytes = 8192;

 private:
  template <class Ready>
  void WaitUntil(Ready ready);
  void Reserve(Batch batch, int from);
  void Post(Batch batch, int from, Label label, const Buffer& destination,
            std::function<void()> check = {});
  void Arrived(Batch batch, int from);
  /// Wakes the member if its wait is over. With mutex_ held.
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
  std::vector<int> open_;           // receives reserved and not arrived, by batch
  std::vector<int> open_receives_;  // the same by member
  std::vector<int> open_sends_;     // sends whose memory is in use, by member
  int num_receives_ = 0;            // sums of these
  int num_sends_ = 0;
  int num_posted_ = 0;                // receives the plane may write for
  std::size_t num_expected_ = 0;      // receives of ReceiveExpected since Begin
  std::optional<std::size_t> other_;  // the first of them that got other bytes
  bool closed_ = false;               // nothing more is posted
  std::string error_;                 // of the first receive that failed
  std::function<bool()> over_;        // of the wait in progress
};

}  // namespace troupe
