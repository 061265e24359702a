// The connections of one process to all others, while the job meets.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "cluster/handshake.hpp"
#include "cluster/join.hpp"

namespace troupe {

/// One connection per peer and purpose (control, heartbeat and, where needed, tensors).
class Mesh {
 public:
  Mesh(ProcessId self, int num_processes);

  /// Leaves out peers that are no members.
  void KeepOnly(const Roster& roster);
  /// Makes a connection for tensors to `peer` a condition of complete().
  void NeedTensors(ProcessId peer);
  /// Keeps a connection. Drops it if the other side has closed it already. Otherwise it replaces an
  /// earlier one that the other side gave up on.
  void Put(ProcessId peer, Purpose purpose, ProvenSocket connection);
  bool complete() const;
  /// The peers with a connection missing, ascending.
  std::vector<ProcessId> Missing() const;
  /// All peers, ascending. Only when complete.
  std::vector<Peer> Take();

 private:
  std::map<ProcessId, Peer> peers_;
  std::set<ProcessId> need_tensors_;
};

}  // namespace troupe
