// The open messages of one peer on a proven connection, without the connection itself: takes
// received frames, and queues frames to send in a FrameWriter.
//
//   a message     is sent at once if its receive is ready, or if it is small and few early ones are
//                 unreceived (credit). It is kept if it arrives before its receive is posted
//   any other     is announced, and sent in pieces when its receive is ready
//   a receive     reports once that it is ready: when it is posted if larger than kSmallBytes, even
//                 if its message has arrived, otherwise when its message is announced. A message
//                 of another size fails the receive
//   a pull        posts its receive, then requests the bytes, which arrive in pieces
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/plane_engine.hpp"
#include "transport/tcp/frame.hpp"
#include "transport/tcp/frame_reader.hpp"
#include "transport/tcp/frame_writer.hpp"

namespace troupe {

/// A peer's requests to this process, other than messages.
struct PeerRequests {
  std::function<void(const PullRequest& request)> pull;
  std::function<void(std::uint64_t key, std::uint64_t weight)> return_weight;
};

class TcpPeer final : public FrameTarget {
 public:
  TcpPeer(ProcessId process, std::string name, FrameWriter& out, PlaneCounters& counters,
          PeerRequests requests);

  void Send(OutMessage message);
  void Receive(Reception reception);
  void RequestPull(const PullRequest& request);
  void Refuse(const PullRequest& request);
  void Return(std::uint64_t key, std::uint64_t weight);
  /// Fails open receives; drops early messages and messages that wait for their receives.
  void FailAll(const std::function<Failure(const Reception&)>& failure);

  std::span<std::byte> BeginFrame(const Frame& frame) override;
  void EndFrame(const Frame& frame) override;
  void SpoiledFrame(const Frame& frame) override;

  /// The cost of early messages kept for later receives (CostOf).
  std::uint64_t early_kept() const { return early_arrived_ - early_received_; }

 private:
  struct LabelHash {
    std::size_t operator()(const Label& label) const;
  };
  struct SameLabel {
    bool operator()(const Label& a, const Label& b) const {
      return a.stream == b.stream && a.sequence == b.sequence;
    }
  };
  template <class T>
  using ByLabel = std::unordered_map<Label, T, LabelHash, SameLabel>;
  struct Receiving {
    Reception reception;
    std::uint64_t received = 0;  // bytes
    bool ready = false;          // the sender has been informed
  };

  /// An early message whose pieces are arriving.
  struct Arriving {
    enum class Place : std::uint8_t { kDestination, kKept, kUnwanted } place = Place::kUnwanted;
    Buffer kept;
    std::uint64_t total = 0;
    std::uint64_t received = 0;  // bytes
  };

  std::span<std::byte> BeginEarly(const Frame& frame);
  void BeginArriving(const Frame& frame, Arriving& arriving);
  std::span<std::byte> BeginPiece(const Frame& frame);
  void EndEarly(const Frame& frame);
  void EndPiece(const Frame& frame);
  void OnAnnounce(const Frame& frame);
  void OnReady(const Frame& frame);
  void OnCredit(const Frame& frame);
  void OnRefused(const Frame& frame);
  void Announce(const OutMessage& message);
  void SendReady(Receiving& receiving);
  void Complete(const Label& label);
  void Fail(const Label& label, const Failure& failure);
  void FailSize(const Label& label, std::uint64_t got);
  void EarlyReceived(std::uint64_t num_bytes);

  const ProcessId process_;
  const std::string name_;
  FrameWriter& out_;
  PlaneCounters& counters_;
  const PeerRequests requests_;

  ByLabel<Receiving> receiving_;
  ByLabel<Buffer> early_;             // complete, receive not posted yet
  ByLabel<std::uint64_t> announced_;  // sizes of messages whose receives are not posted yet
  ByLabel<OutMessage> waiting_;       // for their receives
  ByLabel<std::uint64_t> ready_;      // sizes of receives whose messages are not sent yet
  ByLabel<std::uint64_t> sent_;       // sizes of early messages whose receives will still report
  ByLabel<Arriving> arriving_;        // early messages with some pieces received
  std::vector<std::byte> unwanted_;   // scratch memory for pieces whose receive has failed

  // Total costs of early messages.
  std::uint64_t early_sent_ = 0, early_acknowledged_ = 0;                      // to the peer
  std::uint64_t early_arrived_ = 0, early_received_ = 0, early_reported_ = 0;  // from the peer
};

}  // namespace troupe
