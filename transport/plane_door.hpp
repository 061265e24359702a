// The calls of a plane on the caller's thread: checks arguments, then posts to the engine's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/abort_signal.hpp"
#include "transport/plane.hpp"
#include "transport/plane_engine.hpp"
#include "transport/pump.hpp"

namespace troupe {

class PlaneDoor : public Plane {
 public:
  ProcessId self() const final { return self_; }
  int num_processes() const final { return num_processes_; }
  PlaneStats stats() const final;
  void Leave() final;

  /// Throws std::invalid_argument for a `to` that is not another process of the job, a buffer that
  /// is not in this process or is on a device that the plane cannot read, or a reserved stream;
  /// std::logic_error before Connect. Drops the message, without calling `sent`, after an abort,
  /// after Close, or if `to` has failed.
  void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) final;
  /// Throws like Send.
  void Receive(Reception reception) final;
  void Pull(std::uint64_t key, std::int64_t offset, Reception reception) final;
  void Return(ProcessId home, std::uint64_t key, std::uint64_t weight) final;

 protected:
  /// Throws std::invalid_argument for a self outside the names.
  PlaneDoor(const PlaneSettings& settings, std::shared_ptr<PlaneCounters> counters);
  /// Call it once, in the plane's constructor. Both must live until Close() has ended the pump's
  /// thread; the pump rejects later posts for as long as the plane lives.
  void Open(Pump& pump, PlaneEngine& engine);
  /// Aborts the engine, on the pump's thread, when `signal` is raised during the lifetime of the
  /// result. Null without a signal.
  std::shared_ptr<void> AbortWith(AbortSignal* signal) const;
  /// "n1: data plane: ERROR", for an error that ended the pump's thread.
  static std::string CauseOf(const PlaneSettings& settings, const std::string& error);
  void CheckAddresses(std::size_t count) const;
  void Connected() { connected_ = true; }

 private:
  void CheckPeer(ProcessId process, const char* what) const;
  /// Runs `call` with the reception on the pump's thread; fails it if the thread has ended.
  void Post(Reception reception, std::function<void(Reception)> call);

  const ProcessId self_;
  const int num_processes_;
  const std::shared_ptr<PlaneCounters> counters_;
  Pump* pump_ = nullptr;
  PlaneEngine* engine_ = nullptr;
  std::atomic<bool> connected_ = false;
};

}  // namespace troupe
