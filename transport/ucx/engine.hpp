// The data plane as its thread sees it: what is open with whom, and how it ends. All of it runs on
// the pump's thread; plane.hpp is the door for everybody else.
//
//   a receive   is one UCX receive of the payload, and one of the header unless Verify::kOff. When
//               both have ended and are right, `received`. When anything is wrong, both are
//               cancelled and `failed` is called once UCX lets go of the memory, or after kGrace,
//               since a peer that has stopped in mid-transfer never makes it let go.
//   a send      is one of the header and one of the payload, and owns the buffer until both end. A
//               send that ends badly never gives its buffer back: the peer may still be reading it.
//   a pull      is cut into slices (transport/plane_engine.hpp): UCX copies a whole message of
//               shared memory at once, and meanwhile nothing else would move
//   a peer      works until its endpoint fails; then its receives fail and what goes to it is
//               dropped. Its endpoint is settled when the peer's hello is here and our answer is
//               out: UCX aborts the process when an endpoint is closed while it is being connected.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/plane_engine.hpp"
#include "transport/pump.hpp"
#include "transport/ucx/handles.hpp"
#include "transport/ucx/plane.hpp"
#include "transport/ucx/wire.hpp"
#include "transport/wire_key.hpp"

namespace troupe {

class UcxEngine final : public PlaneEngine {
 public:
  using Clock = Pump::Clock;
  static constexpr std::chrono::milliseconds kGrace{200};

  UcxEngine(const UcxOptions& options, const WireSalt& salt, UcxWorker& worker, Pump& pump,
            std::shared_ptr<PlaneCounters> counters);
  ~UcxEngine() override;

  /// Opens an endpoint to every other process that has an address. Throws UcxError,
  /// std::invalid_argument.
  void Connect(const std::vector<std::vector<std::byte>>& addresses);
  /// "sysv + cma" of each process; empty where there is no endpoint.
  std::vector<std::string> Lanes() const;
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  void Receive(Reception reception) override;
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override;
  void Abort(const Failure& cause) override;
  /// Abort, when UCX will not be called any more: what it holds stays with it.
  void Abandon(const Failure& cause);
  /// Ends everything, endpoints as soon as they are settled; quiet() tells when.
  void BeginClose();
  /// Whether every endpoint has been closed or can be.
  bool settled() const;
  /// Whether UCX holds nothing of ours.
  bool quiet() const;
  /// Housekeeping, after each round of the pump; when it wants to be called next.
  std::optional<Clock::time_point> AfterRound();

 private:
  struct Receiving;
  struct Sending;
  struct Posting;
  struct Peer;

  void AdvanceSend(Sending& sending);
  void Advance(Receiving& receiving);
  void Inspect(Receiving& receiving);
  void InspectHeader(Receiving& receiving);
  void Fail(Receiving& receiving, const Failure& failure);
  void FailAll(Peer& peer, const std::function<Failure(const Reception&)>& failure);
  void Report(Receiving& receiving);
  void Retire(Receiving& receiving);
  using PlaneEngine::WhyNot;
  Failure WhyNot(const Peer& peer, const Reception& reception) const;
  void CloseSettled();
  void PeerFailed(ProcessId process, const Failure& reason) override;

  void AskForSlice(const PullRequest& request, ProcessId home) override;
  void Refuse(const PullRequest& request) override;
  void SendPull(ControlKind kind, const PullRequest& request, ProcessId to);
  void SendControl(ProcessId to, ControlMessage message);
  void PostControl(ProcessId to, ControlMessage message);
  void EndControl(Posting& posting);
  void Greet(ProcessId from);
  void OnControl(std::span<const std::byte> bytes);
  void Handle(const ControlMessage& message);
  void HandleRefusal(const ControlMessage& message);
  Peer& PeerAt(ProcessId process);

  const UcxOptions options_;
  UcxWorker& worker_;
  WireKey key_;  // of what this process sends
  std::uint64_t header_counter_ = 0;
  std::uint64_t control_counter_ = 0;

  bool connected_ = false;
  std::vector<ControlMessage> early_;  // arrived before Connect()

  std::vector<std::unique_ptr<Peer>> peers_;  // by process; null at our own place
  std::unordered_map<Sending*, std::unique_ptr<Sending>> sending_;
  std::unordered_map<Posting*, std::unique_ptr<Posting>> posting_;
  std::vector<Receiving*> dying_;  // have an error, and UCX has not let go yet
  // Ended inside a callback of their own; destroyed after the round.
  std::vector<std::unique_ptr<Receiving>> retired_receiving_;
  std::vector<std::unique_ptr<Sending>> retired_sending_;
  std::vector<std::unique_ptr<Posting>> retired_posting_;
  std::vector<Buffer> quarantine_;  // of sends that ended badly
};

}  // namespace troupe
