// A proven connection that carries join messages both ways, without blocking.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cluster/handshake.hpp"
#include "cluster/join_message.hpp"
#include "cluster/sealed_frame.hpp"
#include "cluster/tcp_progress.hpp"

namespace troupe {

class JoinChannel {
 public:
  JoinChannel(ProvenSocket connection, Side self);

  int fd() const { return socket_.fd(); }
  /// The events to poll for.
  short events() const;
  /// Queues a message for the next Serve(). Throws WireError if it is too large.
  void Send(const JoinMessage& message);
  /// Writes and reads as much as possible. Never throws: any error closes the channel.
  void Serve();
  /// The received messages, in order; also after the end.
  std::optional<JoinMessage> Next();
  bool open() const { return end_.empty(); }
  /// Why it is closed: "it closed the connection". Empty while it is open.
  const std::string& end() const { return end_; }
  /// Has the system look, every few seconds, whether the peer's machine is there while nothing is sent.
  void KeepAlive();
  bool flushed() const { return output_.empty(); }
  /// For how long no sent byte has been acknowledged, as of the last Serve.
  std::chrono::nanoseconds stuck(Deadline now) const { return tcp_.stuck(now); }

  Address local_address() const { return local_; }
  Address peer_address() const { return peer_; }

 private:
  const Socket& tcp_socket() const { return wire_ ? wire_ : socket_; }
  void ReadSome();

  Socket socket_;
  Socket wire_;  ///< with TLS, the TCP socket to query
  TcpProgress tcp_{std::chrono::steady_clock::now()};
  Address local_;
  Address peer_;
  FrameSealer sealer_;
  FrameOpener opener_;
  std::vector<std::byte> output_;
  std::deque<JoinMessage> input_;
  std::string end_;
};

}  // namespace troupe
