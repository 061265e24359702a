// Point-to-point between the processes of a job: bytes from one process to another.
//
// A process is a number, [0, n), the same for everybody. A label matches a send with its receive;
// it is unique per (from, to) while either is open. Receives are posted into memory of the exact
// size, so nothing is buffered beyond what the transport below keeps for a message that is early.
//
// Callbacks run on the plane's own thread: they must be short, must not throw and normally post one
// message or wake one thread. They may call the plane. When the job's AbortSignal is raised, every
// open receive fails with its cause; open sends are dropped, their callback uncalled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "transport/buffer.hpp"
#include "transport/failure.hpp"

namespace troupe {

/// Number of a process in the job, [0, n).
using ProcessId = int;

/// What a message on the data plane is called.
struct Label {
  std::uint64_t stream = 0;    ///< who talks: e.g. StreamOf("tensor language.s0 dp1")
  std::uint64_t sequence = 0;  ///< the how manieth, as both ends count
};

/// A stream's number from its name: the same in every process (FNV-1a).
std::uint64_t StreamOf(const std::string& name);

class DataPlane {
 public:
  virtual ~DataPlane() = default;

  virtual ProcessId self() const = 0;
  virtual int num_processes() const = 0;

  /// Sends the bytes of `buffer`, which must not be written before `sent` is called. To oneself is
  /// an error. `sent` may be empty.
  virtual void Send(ProcessId to, Label label, Buffer buffer, std::function<void()> sent) = 0;

  /// Receives exactly destination.num_bytes(). `what` names the message in errors ("edge
  /// vision>language, microbatch 3"). Exactly one of the callbacks is called.
  virtual void Receive(ProcessId from, Label label, Buffer destination, std::string what,
                       std::function<void()> received, OnFailure failed) = 0;
};

}  // namespace troupe
