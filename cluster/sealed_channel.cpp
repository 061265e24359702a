#include "cluster/sealed_channel.hpp"

#include <array>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace troupe {

SealedChannel::SealedChannel(ProvenSocket connection, Side self)
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

short SealedChannel::events() const {
  return static_cast<short>(output_.empty() ? POLLIN : POLLIN | POLLOUT);
}

void SealedChannel::Serve() {
  if (!open()) return;
  try {
    ReadSome();
    if (open()) WriteSome();
    tcp_.Observe(ReadTcpState(tcp_socket().fd()).value_or(TcpState()),
                 std::chrono::steady_clock::now());
  } catch (const std::exception& error) {
    end_ = error.what();
  }
}

void SealedChannel::KeepAlive() {
  const auto set = [fd = tcp_socket().fd()](int level, int option, int value) {
    static_cast<void>(setsockopt(fd, level, option, &value, sizeof value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::optional<std::vector<std::byte>> SealedChannel::NextPayload() {
  if (input_.empty()) return std::nullopt;
  std::vector<std::byte> payload = std::move(input_.front());
  input_.pop_front();
  return payload;
}

void SealedChannel::Close(const std::string& why) {
  if (open()) end_ = why;
  input_.clear();
}

void SealedChannel::ReadSome() {
  std::array<std::byte, 65536> bytes;
  // Bounded, since the other side may never stop sending.
  for (int round = 0; round < 64; ++round) {
    const auto n = socket_.TryRead(bytes);
    if (!n) return;
    if (*n == 0) {
      end_ = "it closed the connection";
      return;
    }
    opener_.Receive(std::span(bytes).first(*n));
    while (auto payload = opener_.Next()) input_.push_back(*std::move(payload));
  }
}

void SealedChannel::WriteSome() {
  while (!output_.empty() && socket_.TryDrain(output_.front())) output_.pop_front();
}

}  // namespace troupe
