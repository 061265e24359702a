// The UCX data plane on its thread: open operations, peers and their ends. All of it runs on the
// pump's thread; other threads use plane.hpp.
//
//   a receive   is one UCX receive of the payload and, unless Verify::kOff, one of the header. When
//               both have ended and are valid, calls `received`. An error cancels both, and calls
//               `failed` once UCX releases the memory, or after kGrace, since a peer that stops
//               in mid-transfer keeps UCX from releasing it
//   a send      is one of the header and one of the payload, and owns the buffer until both end. A
//               failed send never releases its buffer: the peer may still be reading it
//   a pull      is cut into slices (transport/plane_engine.hpp): UCX copies a whole message of
//               shared memory at once, and nothing else would move meanwhile
//   a peer      works until its endpoint fails. Then its receives fail, and messages to it are
//               dropped. Its endpoint is settled once the peer's hello has arrived and our answer
//               is sent: UCX aborts the process if an endpoint is closed while connecting
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
  /// "sysv + cma", by process; empty without an endpoint.
  std::vector<std::string> Lanes() const;
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  void Receive(Reception reception) override;
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override;
  void Abort(const Failure& cause) override;
  /// Like Abort, but without further calls of UCX, which keeps the buffers it holds.
  void Abandon(const Failure& cause);
  /// Ends everything, and endpoints as soon as they are settled. quiet() is true at the end.
  void BeginClose();
  /// Whether every endpoint is closed or can be closed.
  bool settled() const;
  /// Whether UCX holds no buffer or request of this engine.
  bool quiet() const;
  /// Housekeeping after each round of the pump. Returns the latest time of its next call, if any.
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
  using PlaneEngine::ReceiveError;
  Failure ReceiveError(const Peer& peer, const Reception& reception) const;
  void CloseSettled();
  void PeerFailed(ProcessId process, const Failure& reason) override;

  void RequestSlice(const PullRequest& request, ProcessId home) override;
  void Refuse(const PullRequest& request) override;
  void SendPull(ControlKind kind, const PullRequest& request, ProcessId to);
  void SendControl(ProcessId to, ControlMessage message);
  void PostControl(ProcessId to, ControlMessage message);
  void EndControl(Posting& posting);
  void AnswerHello(ProcessId from);
  void OnControl(std::span<const std::byte> bytes);
  void Handle(const ControlMessage& message);
  void HandleRefusal(const ControlMessage& message);
  Peer& PeerAt(ProcessId process);

  const UcxOptions options_;
  UcxWorker& worker_;
  WireKey key_;  // signs messages of this process
  std::uint64_t header_counter_ = 0;
  std::uint64_t control_counter_ = 0;

  bool connected_ = false;
  std::vector<ControlMessage> early_;  // arrived before Connect()

  std::vector<std::unique_ptr<Peer>> peers_;  // by process; null for this process
  std::unordered_map<Sending*, std::unique_ptr<Sending>> sending_;
  std::unordered_map<Posting*, std::unique_ptr<Posting>> posting_;
  std::vector<Receiving*> dying_;  // failed, but not released by UCX yet
  // Ended inside their own callbacks; destroyed after the round.
  std::vector<std::unique_ptr<Receiving>> retired_receiving_;
  std::vector<std::unique_ptr<Sending>> retired_sending_;
  std::vector<std::unique_ptr<Posting>> retired_posting_;
  std::vector<Buffer> quarantine_;  // of failed sends
};

}  // namespace troupe
