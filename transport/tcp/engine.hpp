// The TCP plane on its thread: for each connected process a peer, its frames and its connection.
// Other threads use plane.hpp.
//
// A peer works until its connection ends or delivers an illegal frame. Then its receives fail, and
// messages to it are dropped. After an abort nothing is read or written any more, but connections
// stay open until Close(), so that peers do not consider this process lost.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/plane_engine.hpp"
#include "transport/tcp/plane.hpp"
#include "transport/tcp/poller.hpp"

namespace troupe {

class TcpEngine final : public PlaneEngine {
 public:
  /// Moves the connections out of `options`. Throws std::invalid_argument.
  TcpEngine(TcpOptions& options, Poller& poller, Pump& pump,
            std::shared_ptr<PlaneCounters> counters);
  ~TcpEngine() override;

  /// Starts to read and write frames.
  void Connect();
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  void Receive(Reception reception) override;
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override;
  void Abort(const Failure& cause) override;
  void Close();

 private:
  struct Peer;

  void RequestSlice(const PullRequest& request, ProcessId home) override;
  void Refuse(const PullRequest& request) override;
  void PeerFailed(ProcessId process, const Failure& reason) override;

  /// Whether messages to `process` can be sent.
  bool Reaches(ProcessId process) const;
  bool Flush();
  void Ready(ProcessId process, bool readable, bool writable);
  bool Write(Peer& peer);
  /// Stops reading and writing its connection.
  void StopWatching(Peer& peer);
  Peer& PeerAt(ProcessId process) { return *peers_[static_cast<std::size_t>(process)]; }

  Poller& poller_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by process; null without a connection
};

}  // namespace troupe
