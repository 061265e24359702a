// The TCP plane as its thread sees it: a peer, its frames and its connection for each process that
// has one. plane.hpp is the door for everybody else.
//
// A peer works until its connection ends or brings what a peer must not send; then its receives
// fail, and what goes to it is dropped. After an abort nothing is read or written any more, but
// connections stay open until Close(), so that nobody takes this process for lost.
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
  /// Takes the connections out of `options`. Throws std::invalid_argument.
  TcpEngine(TcpOptions& options, Poller& poller, Pump& pump,
            std::shared_ptr<PlaneCounters> counters);
  ~TcpEngine() override;

  /// From now on frames are read and written.
  void Connect();
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override;
  void Receive(Reception reception) override;
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override;
  void Abort(const Failure& cause) override;
  void Close();

 private:
  struct Peer;

  void AskForSlice(const PullRequest& request, ProcessId home) override;
  void Refuse(const PullRequest& request) override;
  void PeerFailed(ProcessId process, const Failure& reason) override;

  /// Whether something may be sent to it.
  bool Reaches(ProcessId process) const;
  bool Flush();
  void Ready(ProcessId process, bool readable, bool writable);
  bool Write(Peer& peer);
  /// Nothing of it is read or written any more.
  void Silence(Peer& peer);
  Peer& PeerAt(ProcessId process) { return *peers_[static_cast<std::size_t>(process)]; }

  Poller& poller_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by process; null without a connection
};

}  // namespace troupe
