// The common part of all planes' engines: pulls in slices, answers to the pulls of others, returned
// weights, and the errors of receives. An engine runs on one thread, its pump's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/failure.hpp"
#include "transport/plane.hpp"
#include "transport/pump.hpp"

namespace troupe {

/// The stream of pulled tensors. Sequence numbers are counted by the receiver.
inline constexpr std::uint64_t kPullStream = 0x70756c6c70756c6c;

/// The counters of a plane, readable by every thread.
struct PlaneCounters {
  std::atomic<std::uint64_t> bytes_sent = 0, bytes_received = 0;
  std::atomic<std::uint64_t> messages_sent = 0, messages_received = 0;
  std::atomic<std::uint64_t> fetches_in_flight = 0;
  std::atomic<std::uint64_t> peers_connected = 0;
  std::atomic<std::uint64_t> strangers = 0;
};

/// A request to send bytes [offset, offset + num_bytes) of allocation `key` as message `number` of
/// kPullStream.
struct PullRequest {
  ProcessId from = 0;
  std::uint64_t key = 0;
  std::int64_t offset = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t number = 0;
};

/// The error of a refused pull.
std::string RefusalText(const std::string& what, const std::string& peer,
                        const PullRequest& request);

class PlaneEngine {
 public:
  /// Pulls are cut into slices, so that other messages can move in between.
  static constexpr std::size_t kSliceBytes = std::size_t{4} << 20;
  static constexpr int kSlicesInFlight = 4;  ///< per pull

  PlaneEngine(const PlaneSettings& settings, Pump& pump, std::shared_ptr<PlaneCounters> counters);
  PlaneEngine(const PlaneEngine&) = delete;
  PlaneEngine& operator=(const PlaneEngine&) = delete;
  virtual ~PlaneEngine() = default;

  virtual void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) = 0;
  virtual void Receive(Reception reception) = 0;
  virtual void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) = 0;
  /// Fails every open receive with `cause`, and every later one.
  virtual void Abort(const Failure& cause) = 0;
  /// Ignores `reception.label`.
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception);
  /// Connections that fail from now on have closed in order.
  void Leave() { leaving_ = true; }
  /// Sets whether the plane reads device memory. Before the first send.
  void ReadsDeviceMemory(bool reads) { reads_device_memory_ = reads; }

 protected:
  virtual void RequestSlice(const PullRequest& request, ProcessId home) = 0;
  virtual void Refuse(const PullRequest& request) = 0;
  virtual void PeerFailed(ProcessId process, const Failure& reason) = 0;

  /// Sends the bytes that a peer has requested, or refuses.
  void HandlePull(const PullRequest& request);
  void HandleReturn(ProcessId from, std::uint64_t key, std::uint64_t weight);
  /// Why a receive from `peer` must fail, or empty. `failure` is that of the peer's connection.
  Failure ReceiveError(const std::string& peer, const Failure& failure,
                       const Reception& reception) const;
  const std::string& NameOf(ProcessId process) const;
  /// Reports to the owner, unless the failure was expected.
  void ReportFailure(ProcessId process, const std::string& reason) const;

  const PlaneSettings settings_;
  Pump& pump_;
  const std::shared_ptr<PlaneCounters> counters_;
  bool leaving_ = false;
  bool closing_ = false;
  bool reads_device_memory_ = false;
  Failure abort_cause_;

 private:
  struct Slices;
  void PullNext(const std::shared_ptr<Slices>& slices);
  void PullSlice(std::uint64_t key, std::int64_t offset, Reception reception);
  void Answer(const PullRequest& request, Buffer bytes);

  std::uint64_t pull_counter_ = 0;
};

}  // namespace troupe
