// A proven connection on which join messages go both ways, without waiting.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cluster/join_message.hpp"
#include "cluster/sealed_frame.hpp"
#include "cluster/socket.hpp"
#include "cluster/tcp_progress.hpp"

namespace troupe {

class JoinChannel {
 public:
  /// `wire`: with TLS, the TCP socket below, to be asked for the addresses.
  JoinChannel(Socket socket, const RunKey& session, Side self, Socket wire = {});

  int fd() const { return socket_.fd(); }
  /// What to poll for.
  short events() const;
  /// Sends when Serve() is next called. Throws WireError when it is too large.
  void Send(const JoinMessage& message);
  /// Writes and reads what is possible. Never throws: whatever goes wrong closes the channel.
  void Serve();
  /// What has come, in order; also after the end.
  std::optional<JoinMessage> Next();
  bool open() const { return end_.empty(); }
  /// Why it is closed: "it closed the connection". Empty while it is open.
  const std::string& end() const { return end_; }
  bool flushed() const { return output_.empty(); }
  /// For how long nothing that was sent has been acknowledged, as of the last Serve.
  std::chrono::nanoseconds stuck(Deadline now) const { return tcp_.stuck(now); }
  /// Nothing is sent after what is being sent.
  void FinishWriting() { socket_.FinishWriting(); }

  Address local_address() const { return local_; }
  Address peer_address() const { return peer_; }

 private:
  const Socket& tcp_socket() const { return wire_ ? wire_ : socket_; }
  void ReadSome();

  Socket socket_;
  Socket wire_;
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
