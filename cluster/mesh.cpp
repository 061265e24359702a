#include "cluster/mesh.hpp"

#include <utility>

namespace troupe {

Mesh::Mesh(ProcessId self, int num_processes) {
  for (ProcessId process = 0; process < num_processes; ++process) {
    if (process != self) peers_[process].process = process;
  }
}

void Mesh::KeepOnly(const Roster& roster) {
  std::erase_if(peers_,
                [&](const auto& entry) { return FindMember(roster, entry.first) == nullptr; });
}

void Mesh::NeedTensors(ProcessId peer) { need_tensors_.insert(peer); }

void Mesh::Put(ProcessId peer, Purpose purpose, ProvenSocket connection) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || connection.socket.closed_by_peer()) return;
  Peer& place = found->second;
  if (purpose == Purpose::kControl) {
    place.control = std::move(connection.socket);
  } else if (purpose == Purpose::kTensors) {
    place.tensors = std::move(connection.socket);
    place.tensors_session = connection.session;
  } else {
    place.heartbeat = std::move(connection.socket);
    place.heartbeat_wire = std::move(connection.wire);
  }
}

bool Mesh::complete() const { return Missing().empty(); }

std::vector<ProcessId> Mesh::Missing() const {
  std::vector<ProcessId> missing;
  for (const auto& [process, peer] : peers_) {
    const bool needs_tensors = need_tensors_.contains(process) && !peer.tensors;
    if (!peer.control || !peer.heartbeat || needs_tensors) missing.push_back(process);
  }
  return missing;
}

std::vector<Peer> Mesh::Take() {
  std::vector<Peer> peers;
  for (auto& [process, peer] : peers_) peers.push_back(std::move(peer));
  return peers;
}

}  // namespace troupe
