// The connections of one process to all others, while they are being made.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cluster/handshake.hpp"
#include "cluster/join.hpp"

namespace troupe {

/// One connection per peer and purpose (control, heartbeat and, where needed, tensors).
class Mesh {
 public:
  Mesh(ProcessId self, int num_processes);

  /// From now on a connection for tensors to `peer` belongs to what is complete.
  void NeedTensors(ProcessId peer);
  /// Keeps a proven connection, with TLS the TCP socket below it as well. One that the other side
  /// has already given up is dropped; else a later one takes the place of an earlier one, of which
  /// the other side never learned.
  void Put(ProcessId peer, Purpose purpose, Socket socket, Socket wire, const RunKey& session);
  bool complete() const;
  /// Those with a connection missing, ascending.
  std::vector<ProcessId> Missing() const;
  /// All peers, ascending. Only when complete.
  std::vector<Peer> Take();

 private:
  ProcessId self_;
  std::vector<Peer> peers_;          ///< by process, the own one stays empty
  std::vector<bool> needs_tensors_;  ///< by process
};

}  // namespace troupe
