// What is open with one other process on a proven connection, without the connection itself: frames
// that came go in, frames to send go to a FrameWriter.
//
//   a message     goes out at once if its receive is ready, or if it is small and few early ones
//                 are not received yet (credit); it is kept if it arrives before its receive is
//                 posted
//   any other     is announced, and sent in pieces when its receive is ready
//   a receive     reports once that it is ready: one of more than kSmallBytes when it is posted,
//                 even if its message is here; a smaller one if its message is announced. A message
//                 of another size than the receive fails it
//   a pull        posts its receive, then asks; the answer comes in pieces
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

/// What a peer asks of this process, beside messages.
struct PeerRequests {
  std::function<void(const PullRequest& request)> pull;
  std::function<void(std::uint64_t key, std::uint64_t weight)> give_back;
};

class TcpPeer final : public FrameTarget {
 public:
  TcpPeer(ProcessId process, std::string name, FrameWriter& out, PlaneCounters& counters,
          PeerRequests requests);

  void Send(OutMessage message);
  void Receive(Reception reception);
  void Ask(const PullRequest& request);
  void Refuse(const PullRequest& request);
  void Return(std::uint64_t key, std::uint64_t weight);
  /// Open receives fail, early messages and those that wait for their receives are dropped.
  void FailAll(const std::function<Failure(const Reception&)>& failure);

  std::span<std::byte> BeginFrame(const Frame& frame) override;
  void EndFrame(const Frame& frame) override;
  void SpoiledFrame(const Frame& frame) override;

  /// Bytes of early messages that are kept for receives to come, with their places in tables.
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
    bool ready = false;          // the sender knows of it
  };

  /// An early message that is being read.
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
  void SayReady(Receiving& receiving);
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
  ByLabel<Buffer> early_;             // arrived as a whole, their receives are to come
  ByLabel<std::uint64_t> announced_;  // sizes of messages whose receives are to come
  ByLabel<OutMessage> waiting_;       // for their receives
  ByLabel<std::uint64_t> ready_;      // sizes of receives whose messages are to come
  ByLabel<std::uint64_t> sent_;       // sizes of early messages whose receives will report later
  ByLabel<Arriving> arriving_;        // early messages of which pieces are here
  std::vector<std::byte> unwanted_;   // for pieces of those whose receive has failed

  // Costs of early messages since the beginning.
  std::uint64_t early_sent_ = 0, early_acknowledged_ = 0;                      // to the peer
  std::uint64_t early_arrived_ = 0, early_received_ = 0, early_reported_ = 0;  // from the peer
};

}  // namespace troupe
