// Point-to-point: buffers from one boundary leader to another.
//
// Order: sends of one pair (source, destination) are delivered in the order they were given.
// Back-pressure: an endpoint keeps at most `capacity` sends per pair that nobody has received; the
// rest wait inside the sender (their `sent` has not been called), and a sender that counts its
// unanswered sends is therefore never ahead by more than it chose to be. A receive finds its send
// among those that wait, too.
// Ends: a peer that is not open yet is waited for. When one closes, receives that wait for it fail.
// After an abort every receive fails with the cause, and sends are dropped, `sent` uncalled.
// Callbacks run on whichever thread completed the operation, those of one pair one after the other,
// and may do so while their endpoint is being destroyed: they must be short, must not throw and
// normally post one message to an actor. They may use endpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "transport/abort_signal.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// Names one end in the whole job, e.g. "vision>language/source.1".
using EndpointName = std::string;

/// Matches a send with its receive; unique per pair while both are open.
using Tag = std::uint64_t;

class Endpoint {
 public:
  virtual ~Endpoint() = default;

  /// Sends `buffer` to `peer`. `sent` is called once the bytes are the receiver's (the handle is
  /// released before): its endpoint keeps them or has delivered them. They must not be written
  /// after that either, unless use_count() tells that nobody else holds them. Throws
  /// std::invalid_argument for an undefined buffer and for a tag that is open in this direction.
  virtual void Send(const EndpointName& peer, Tag tag, Buffer buffer,
                    std::function<void()> sent) = 0;

  /// Receives into `destination` (its shape and dtype must match the send's, else `failed` names
  /// both), or, if `destination` is undefined, into a buffer of the transport's choosing: in one
  /// process that is the sender's own memory, shared and not copied. Throws std::invalid_argument
  /// for a tag that is open in this direction.
  virtual void Receive(const EndpointName& peer, Tag tag, Buffer destination,
                       std::function<void(Buffer)> received,
                       std::function<void(const std::string& error)> failed) = 0;
};

/// All endpoints of one process. Thread-safe.
class LocalTransport {
 public:
  /// `abort` may be null. Throws std::invalid_argument for a capacity below 1.
  explicit LocalTransport(std::shared_ptr<AbortSignal> abort, int capacity = 64);
  ~LocalTransport();
  /// Throws std::invalid_argument for a name that is open already. Endpoints must not outlive this
  /// object; destroying one drops what it had not sent and fails what it had not received.
  std::unique_ptr<Endpoint> Open(const EndpointName& name);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe
