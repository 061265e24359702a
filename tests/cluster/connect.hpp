// Connections of a test, made while the calling thread waits.
#pragma once

#include <chrono>
#include <poll.h>
#include <thread>

#include "cluster/poll_set.hpp"
#include "cluster/socket.hpp"

namespace troupe::testing {

/// Connects to the first of its addresses. Tries again until the deadline: nothing may listen there
/// yet. Throws SocketError.
inline Socket Connect(const Address& address, Deadline deadline) {
  for (;;) {
    try {
      Socket socket = Socket::StartConnect(Resolve(address).front());
      PollSet polls;
      polls.Add(socket.fd(), POLLOUT);
      polls.Wait(deadline);
      const int error = socket.ConnectResult();
      if (error == 0) return socket;
      throw SocketError("cannot connect to " + ToString(address), error);
    } catch (const SocketError&) {
      if (std::chrono::steady_clock::now() >= deadline) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// The oldest pending connection; an empty Socket if none arrives before the deadline.
inline Socket Accept(Socket& listener, Deadline deadline) {
  PollSet polls;
  polls.Add(listener.fd(), POLLIN);
  polls.Wait(deadline);
  return listener.TryAccept();
}

}  // namespace troupe::testing
