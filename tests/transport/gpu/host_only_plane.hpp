// A plane that finds out who gives it memory of a device, and how many receives of a label's stream
// are open at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "tests/gpu/emulated/world.hpp"
#include "transport/data_plane.hpp"

namespace troupe::testing {

class HostOnlyPlane final : public DataPlane {
 public:
  explicit HostOnlyPlane(DataPlane& plane) : plane_(plane) {}

  ProcessId self() const override { return plane_.self(); }
  int num_processes() const override { return plane_.num_processes(); }
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) override {
    Check(buffer);
    ++num_sends;
    plane_.Send(to, label, std::move(buffer), std::move(sent));
  }
  void Receive(Reception reception) override {
    Check(reception.destination);
    const int now = ++open;
    for (int most = max_open; now > most && !max_open.compare_exchange_weak(most, now);) continue;
    reception.received = [this, received = std::move(reception.received)] {
      --open;
      received();
    };
    reception.failed = [this, failed = std::move(reception.failed)](const Failure& error) {
      --open;
      failed(error);
    };
    plane_.Receive(std::move(reception));
  }

  std::atomic<int> num_sends = 0;
  std::atomic<int> open = 0;
  std::atomic<int> max_open = 0;

 private:
  static void Check(const Buffer& buffer) {
    const auto found = emulated::FindMemory(buffer.data());
    if (!buffer.on_host() || (found && found->kind == emulated::Allocation::Kind::kDevice))
      emulated::Fault("a plane of the host got memory of a device");
  }

  DataPlane& plane_;
};

}  // namespace troupe::testing
