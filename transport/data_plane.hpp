// Point-to-point between the processes of a job: bytes from one process to another.
//
// Processes have numbers in [0, n), the same everywhere. A label matches a send with its receive;
// it is unique per (from, to) while either is open. Receives are posted with memory of the exact
// size, so nothing is buffered except early messages, by the transport.
//
// Callbacks run on the plane's own thread. They must be short and must not throw; normally they
// post one message or wake one thread. They may call the plane. When the job's AbortSignal is
// raised, every open receive fails with its cause, and open sends are dropped without a callback.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "layout/ids.hpp"
#include "transport/buffer.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// The name of a message on the data plane.
struct Label {
  std::uint64_t stream = 0;    ///< of the sender's stream: e.g. StreamOf("tensor language.s0 dp1")
  std::uint64_t sequence = 0;  ///< sequence number, counted by both ends
};

/// The number of a stream with this name: the same in every process (FNV-1a).
std::uint64_t StreamOf(const std::string& name);

/// A receive. Exactly one of the callbacks is called.
struct Reception {
  ProcessId from = 0;
  Label label = {};
  Buffer destination = {};  ///< receives exactly its num_bytes()
  std::string what = {};    ///< names the message in errors: "edge vision>language, microbatch 3"
  std::function<void()> received = {};
  OnFailure failed = {};
};

class DataPlane {
 public:
  virtual ~DataPlane() = default;

  virtual ProcessId self() const = 0;
  virtual int num_processes() const = 0;

  /// Sends the bytes of `buffer`, which must not be written before `sent` is called. Throws if `to`
  /// is this process. `sent` may be empty.
  virtual void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) = 0;

  virtual void Receive(Reception reception) = 0;
};

}  // namespace troupe
