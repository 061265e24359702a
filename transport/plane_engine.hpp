// What the engines of all planes do alike: pulls in slices, answers to the pulls of others, weights
// that return, and the reasons why nothing can be received. An engine runs on one thread, the one
// of its pump.
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

/// The stream of pulled tensors: sequence = the receiver's own count.
inline constexpr std::uint64_t kPullStream = 0x70756c6c70756c6c;

/// Of a plane, readable by every thread.
struct PlaneCounters {
  std::atomic<std::uint64_t> bytes_sent = 0, bytes_received = 0;
  std::atomic<std::uint64_t> messages_sent = 0, messages_received = 0;
  std::atomic<std::uint64_t> fetches_in_flight = 0;
  std::atomic<std::uint64_t> peers_connected = 0;
  std::atomic<std::uint64_t> strangers = 0;
};

/// A receive, as DataPlane::Receive has it.
struct Reception {
  ProcessId from = 0;
  Label label;
  Buffer destination;
  std::string what;
  std::function<void()> received;
  OnFailure failed;
};

/// A request for bytes [offset, offset + num_bytes) of allocation `key`, to be sent as message
/// `number` of kPullStream.
struct PullRequest {
  ProcessId from = 0;
  std::uint64_t key = 0;
  std::int64_t offset = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t number = 0;
};

/// What the receive of a refused pull fails with.
std::string RefusalText(const std::string& what, const std::string& peer,
                        const PullRequest& request);

class PlaneEngine {
 public:
  /// A pull is cut into slices, so that other messages move meanwhile.
  static constexpr std::size_t kSliceBytes = std::size_t{4} << 20;
  static constexpr int kSlicesInFlight = 4;  ///< of one pull

  PlaneEngine(const PlaneSettings& settings, Pump& pump, std::shared_ptr<PlaneCounters> counters);
  PlaneEngine(const PlaneEngine&) = delete;
  PlaneEngine& operator=(const PlaneEngine&) = delete;
  virtual ~PlaneEngine() = default;

  virtual void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) = 0;
  virtual void Receive(Reception reception) = 0;
  virtual void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) = 0;
  /// Every open receive fails with `cause`, and so does every later one.
  virtual void Abort(const Failure& cause) = 0;
  /// `reception.label` is not used.
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception);
  /// Connections that fail from now on have closed in order.
  void Leave() { leaving_ = true; }
  /// Before anything is sent: whether the plane reads memory of devices.
  void ReadsDeviceMemory(bool reads) { reads_device_memory_ = reads; }

 protected:
  virtual void AskForSlice(const PullRequest& request, ProcessId home) = 0;
  virtual void Refuse(const PullRequest& request) = 0;
  virtual void PeerFailed(ProcessId process, const Failure& reason) = 0;

  /// Sends what a peer has asked for, or refuses.
  void HandlePull(const PullRequest& request);
  void HandleReturn(ProcessId from, std::uint64_t key, std::uint64_t weight);
  /// Why nothing can be received from `peer`, whose connection has failed with `failure`, or empty.
  Failure WhyNot(const std::string& peer, const Failure& failure, const Reception& reception) const;
  const std::string& NameOf(ProcessId process) const;
  /// To the owner, unless the failure was to be expected.
  void TellFailure(ProcessId process, const std::string& reason) const;

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
