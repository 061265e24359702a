#include "transport/plane_door.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {
namespace {

void CheckBuffer(const Buffer& buffer, bool reads_device_memory, const char* call) {
  if (buffer.defined() && !buffer.on_host() && (!reads_device_memory || !buffer.parts().empty())) {
    throw std::invalid_argument(
        std::string("data plane: ") + call + ": expected memory of the host" +
        (reads_device_memory ? " or of a device, as a whole" : "") + ", got memory of device " +
        std::to_string(buffer.device()) + (buffer.parts().empty() ? "" : ", in parts"));
  }
  if (!buffer.defined() || !buffer.local()) {
    throw std::invalid_argument(std::string("data plane: ") + call +
                                ": expected memory of this process, got " +
                                (buffer.defined() ? "a handle to another process's" : "none"));
  }
}

void CheckLabel(const Label& label, const char* call) {
  if (label.stream == kPullStream) {
    throw std::invalid_argument(std::string("data plane: ") + call +
                                ": expected another stream than the reserved one");
  }
}

}  // namespace

PlaneDoor::PlaneDoor(const PlaneSettings& settings, std::shared_ptr<PlaneCounters> counters)
    : self_(settings.self),
      num_processes_(static_cast<int>(settings.names.size())),
      counters_(std::move(counters)) {
  if (self_ < 0 || self_ >= num_processes_) {
    throw std::invalid_argument("data plane: expected a process below " +
                                std::to_string(num_processes_) + ", got " + std::to_string(self_));
  }
}

void PlaneDoor::Open(Pump& pump, PlaneEngine& engine) {
  pump_ = &pump;
  engine_ = &engine;
}

std::shared_ptr<void> PlaneDoor::AbortWith(AbortSignal* signal) const {
  if (signal == nullptr) return nullptr;
  return signal->Subscribe([pump = pump_, engine = engine_](const Failure& cause) {
    pump->Post([engine, cause] { engine->Abort(cause); });
  });
}

std::string PlaneDoor::CauseOf(const PlaneSettings& settings, const std::string& error) {
  return settings.names[static_cast<std::size_t>(settings.self)] + ": data plane: " + error;
}

void PlaneDoor::CheckAddresses(std::size_t count) const {
  if (count != static_cast<std::size_t>(num_processes_)) {
    throw std::invalid_argument("data plane: expected " + std::to_string(num_processes_) +
                                " addresses, got " + std::to_string(count));
  }
  if (connected_) throw std::logic_error("data plane: expected to be connected once");
}

PlaneStats PlaneDoor::stats() const {
  const PlaneCounters& now = *counters_;
  return {now.bytes_sent,        now.bytes_received,  now.messages_sent, now.messages_received,
          now.fetches_in_flight, now.peers_connected, now.strangers};
}

void PlaneDoor::Leave() {
  pump_->Post([engine = engine_] { engine->Leave(); });
}

void PlaneDoor::CheckPeer(ProcessId process, const char* what) const {
  if (process < 0 || process >= num_processes_ || process == self_) {
    throw std::invalid_argument(std::string("data plane: ") + what +
                                ": expected another process of " + std::to_string(num_processes_) +
                                ", got " + std::to_string(process));
  }
  if (!connected_)
    throw std::logic_error(std::string("data plane: ") + what + ": expected to be connected");
}

void PlaneDoor::Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) {
  CheckPeer(to, "send");
  CheckLabel(label, "send");
  CheckBuffer(buffer, reads_device_memory(), "send");
  pump_->Post(
      [engine = engine_, to, label, buffer = std::move(buffer), sent = std::move(sent)]() mutable {
        engine->Send(to, label, std::move(buffer), std::move(sent));
      });
}

void PlaneDoor::Post(Reception reception, std::function<void(Reception)> call) {
  const auto shared = std::make_shared<Reception>(std::move(reception));
  if (!pump_->Post([shared, call = std::move(call)] { call(std::move(*shared)); }))
    shared->failed(shared->what + ": the data plane of this process is closed");
}

void PlaneDoor::Receive(Reception reception) {
  CheckPeer(reception.from, "receive");
  CheckLabel(reception.label, "receive");
  CheckBuffer(reception.destination, reads_device_memory(), "receive");
  Post(std::move(reception), [engine = engine_](Reception it) { engine->Receive(std::move(it)); });
}

void PlaneDoor::Pull(std::uint64_t key, std::int64_t offset, Reception reception) {
  CheckPeer(reception.from, "pull");
  CheckBuffer(reception.destination, reads_device_memory(), "pull");
  ++counters_->fetches_in_flight;
  reception.received = [counters = counters_, received = std::move(reception.received)] {
    --counters->fetches_in_flight;
    received();
  };
  reception.failed = [counters = counters_,
                      failed = std::move(reception.failed)](const Failure& failure) {
    --counters->fetches_in_flight;
    failed(failure);
  };
  Post(std::move(reception),
       [engine = engine_, key, offset](Reception it) { engine->Pull(key, offset, std::move(it)); });
}

void PlaneDoor::Return(ProcessId home, std::uint64_t key, std::uint64_t weight) {
  // A reference may name any process; its receiver has learned from Pull if that fails.
  if (home < 0 || home >= num_processes_ || home == self_ || !connected_) return;
  pump_->Post([engine = engine_, home, key, weight] { engine->Return(home, key, weight); });
}

}  // namespace troupe
