#include "cluster/join_channel.hpp"

#include <array>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace troupe {

JoinChannel::JoinChannel(ProvenSocket connection, Side self)
    : socket_(std::move(connection.socket)),
      wire_(std::move(connection.wire)),
      sealer_(connection.session, self),
      opener_(connection.session, OtherSide(self)) {
  try {
    local_ = tcp_socket().local_address();
    peer_ = tcp_socket().peer_address();
  } catch (const SocketError& error) {
    end_ = error.what();
  }
}

short JoinChannel::events() const {
  return static_cast<short>(output_.empty() ? POLLIN : POLLIN | POLLOUT);
}

void JoinChannel::Send(const JoinMessage& message) {
  const auto frame = sealer_.Seal(Encode(message));
  output_.insert(output_.end(), frame.begin(), frame.end());
}

void JoinChannel::Serve() {
  if (!open()) return;
  try {
    ReadSome();
    if (open()) socket_.TryDrain(output_);
    tcp_.Observe(ReadTcpState(tcp_socket().fd()).value_or(TcpState()),
                 std::chrono::steady_clock::now());
  } catch (const std::exception& error) {
    end_ = error.what();
  }
}

void JoinChannel::KeepAlive() {
  const auto set = [fd = tcp_socket().fd()](int level, int option, int value) {
    static_cast<void>(setsockopt(fd, level, option, &value, sizeof value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::optional<JoinMessage> JoinChannel::Next() {
  if (input_.empty()) return std::nullopt;
  JoinMessage message = std::move(input_.front());
  input_.pop_front();
  return message;
}

void JoinChannel::ReadSome() {
  std::array<std::byte, 16384> bytes;
  // Bounded, since the other side may never stop sending.
  for (int round = 0; round < 256; ++round) {
    const auto n = socket_.TryRead(bytes);
    if (!n) return;
    if (*n == 0) {
      end_ = "it closed the connection";
      return;
    }
    opener_.Receive(std::span(bytes).first(*n));
    while (const auto payload = opener_.Next()) input_.push_back(DecodeJoinMessage(*payload));
  }
}

}  // namespace troupe
