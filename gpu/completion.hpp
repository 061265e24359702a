// Calls back on the host when work on a stream is done, without delaying that stream: callbacks run
// on a separate stream, after an event.
//
// CUDA does not call host functions after a device has failed, and a stage without its callback
// would wait for ever. So while a callback is outstanding, a thread queries the device every
// kPollInterval. After a failure that thread calls the callbacks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gpu/stream.hpp"

namespace troupe::gpu {

/// Not thread-safe.
class Completions {
 public:
  static constexpr std::chrono::milliseconds kPollInterval{100};

  explicit Completions(int device);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  /// Blocks until every callback has run.
  ~Completions();

  /// Calls `done` exactly once: with "" after all work queued on `stream` so far, or with CUDA's
  /// error text after the device has failed. Callbacks run in the order of the calls, on a thread
  /// of the driver or of this object: they must not call CUDA, wait or throw. If this throws
  /// CudaError, `done` is not called.
  void Notify(const Stream& stream, std::function<void(const std::string& error)> done);
  /// Blocks until every callback has run. Throws CudaError if the device has failed; callbacks may
  /// then still follow.
  void Drain() const;

 private:
  struct State;
  struct Ticket;
  void Watch();

  const std::shared_ptr<State> state_;
  Stream stream_;
  Event event_;
  std::thread watcher_;
};

}  // namespace troupe::gpu
