// Combines two planes: the first reaches some peers, the second the others.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/plane.hpp"

namespace troupe {

class PlaneByPeer final : public Plane {
 public:
  /// `by_second`: by process, whether the second plane reaches it. The address() of both is the
  /// first's; the second must work without addresses.
  PlaneByPeer(std::unique_ptr<Plane> first, std::unique_ptr<Plane> second,
              std::vector<bool> by_second);

  ProcessId self() const override { return first_->self(); }
  int num_processes() const override { return first_->num_processes(); }
  std::vector<std::byte> address() const override { return first_->address(); }
  void Connect(std::vector<std::vector<std::byte>> addresses) override;
  std::string transport(ProcessId peer) const override { return Of(peer).transport(peer); }
  PlaneStats stats() const override;
  bool reads_device_memory() const override;
  void Leave() override;
  void Close() override;

  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override {
    Of(to).Send(to, label, std::move(buffer), std::move(sent));
  }
  void Receive(Reception reception) override {
    Plane& plane = Of(reception.from);
    plane.Receive(std::move(reception));
  }
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception) override {
    Plane& plane = Of(reception.from);
    plane.Pull(key, offset, std::move(reception));
  }
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) override {
    Of(home).Return(home, key, weight);
  }

 private:
  /// The plane of `peer`. For an unknown process the first plane, which reports the error.
  Plane& Of(ProcessId peer) const;

  const std::unique_ptr<Plane> first_;
  const std::unique_ptr<Plane> second_;
  const std::vector<bool> by_second_;
};

}  // namespace troupe
