#include "cluster/mesh.hpp"

#include <utility>

namespace troupe {

Mesh::Mesh(ProcessId self, int num_processes)
    : self_(self), needs_tensors_(static_cast<std::size_t>(num_processes)) {
  for (ProcessId process = 0; process < num_processes; ++process)
    peers_.push_back({process, Socket(), Socket(), Socket()});
}

void Mesh::NeedTensors(ProcessId peer) { needs_tensors_[static_cast<std::size_t>(peer)] = true; }

void Mesh::Put(ProcessId peer, Purpose purpose, ProvenSocket connection) {
  if (peer < 0 || peer == self_ || peer >= static_cast<int>(peers_.size())) return;
  if (connection.socket.closed_by_peer()) return;
  Peer& place = peers_[static_cast<std::size_t>(peer)];
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
  for (const Peer& peer : peers_) {
    if (peer.process != self_ &&
        (!peer.control || !peer.heartbeat ||
         (needs_tensors_[static_cast<std::size_t>(peer.process)] && !peer.tensors)))
      missing.push_back(peer.process);
  }
  return missing;
}

std::vector<Peer> Mesh::Take() {
  std::vector<Peer> peers;
  for (Peer& peer : peers_)
    if (peer.process != self_) peers.push_back(std::move(peer));
  return peers;
}

}  // namespace troupe
