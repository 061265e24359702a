// Tells the host when work on a stream is done, and does not hold that stream up meanwhile: what
// is told runs on a stream of its own, behind an event.
//
// A host function of CUDA is not called after a failure of the device, and a stage that is never
// told would wait for ever. So while something is to be told, a thread asks the device every
// kLook whether it has failed; then that thread tells.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gpu/stream.hpp"

namespace troupe::gpu {

/// For one thread at a time.
class Completions {
 public:
  static constexpr std::chrono::milliseconds kLook{100};

  explicit Completions(int device);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  /// Blocks until all has been told.
  ~Completions();

  /// Calls `done` exactly once: with "" when all that is queued on `behind` so far has run, or with
  /// CUDA's words when the device has failed. In the order of the calls, on a thread of the driver
  /// or of this object: it must not call CUDA, wait or throw. Throws CudaError, `done` uncalled.
  void Tell(const Stream& behind, std::function<void(const std::string& error)> done);
  /// Blocks until all has been told. Throws CudaError for a failed device, which may be told later.
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
