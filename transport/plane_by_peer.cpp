#include "transport/plane_by_peer.hpp"

#include <utility>

namespace troupe {

PlaneByPeer::PlaneByPeer(std::unique_ptr<Plane> first, std::unique_ptr<Plane> second,
                         std::vector<bool> by_second)
    : first_(std::move(first)), second_(std::move(second)), by_second_(std::move(by_second)) {}

Plane& PlaneByPeer::Of(ProcessId peer) const {
  const bool known = peer >= 0 && peer < static_cast<ProcessId>(by_second_.size());
  return known && by_second_[static_cast<std::size_t>(peer)] ? *second_ : *first_;
}

void PlaneByPeer::Connect(std::vector<std::vector<std::byte>> addresses) {
  second_->Connect(addresses);
  for (std::size_t i = 0; i < addresses.size() && i < by_second_.size(); ++i)
    if (by_second_[i]) addresses[i].clear();
  first_->Connect(std::move(addresses));
}

PlaneStats PlaneByPeer::stats() const {
  PlaneStats sum = first_->stats();
  const PlaneStats other = second_->stats();
  sum.bytes_sent += other.bytes_sent;
  sum.bytes_received += other.bytes_received;
  sum.messages_sent += other.messages_sent;
  sum.messages_received += other.messages_received;
  sum.fetches_in_flight += other.fetches_in_flight;
  sum.peers_connected += other.peers_connected;
  sum.strangers += other.strangers;
  return sum;
}

bool PlaneByPeer::reads_device_memory() const {
  return first_->reads_device_memory() && second_->reads_device_memory();
}

void PlaneByPeer::Leave() {
  first_->Leave();
  second_->Leave();
}

void PlaneByPeer::Close() {
  first_->Close();
  second_->Close();
}

}  // namespace troupe
