// Connects the actor systems of two processes by sockets that have proved to belong to the job
// (cluster/join.hpp). CAF's own ports stay closed; no other program can use its protocol.
#pragma once

#include <chrono>
#include <memory>

#include <caf/actor_system.hpp>

#include "cluster/socket.hpp"
#include "messages/node.hpp"
#include "transport/abort_signal.hpp"

namespace troupe {

class Connections {
 public:
  /// A process that connects gets `node`. The system must have been made with SystemConfig(…,
  /// spans_processes = true).
  Connections(caf::actor_system& system, const Node& node);

  /// Waits for the other end, which calls Connect.
  void Accept(Socket socket);
  /// The Node at the other end. Throws std::runtime_error when it does not answer in time or `abort`
  /// is raised.
  Node Connect(Socket socket, std::chrono::milliseconds timeout, AbortSignal& abort);

 private:
  class Door;
  caf::actor_system& system_;
  std::shared_ptr<void> door_;  ///< a Door, counted by CAF
};

}  // namespace troupe
