#include "cli/doctor/talk.hpp"

#include <array>
#include <netinet/in.h>
#include <span>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace troupe {
namespace {

/// Fits the addresses of many planes and their findings; longer lengths are malformed.
constexpr std::uint32_t kLongest = 1 << 24;

Deadline In(std::chrono::seconds time) { return std::chrono::steady_clock::now() + time; }

}  // namespace

std::int64_t WallClockNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void Send(Socket& socket, Talk kind, const nlohmann::json& content) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(content);
  ByteWriter writer;
  writer.U32(static_cast<std::uint32_t>(bytes.size() + 1));
  writer.U8(static_cast<std::uint8_t>(kind));
  writer.Raw(std::as_bytes(std::span(bytes)));
  socket.Write(writer.Take(), In(kAnswerTime));
}

TalkMessage Receive(Socket& socket, std::chrono::seconds patience) {
  const Deadline deadline = In(patience);
  std::array<std::byte, 4> head{};
  socket.Read(head, deadline);
  const std::uint32_t length = ByteReader(head).U32();
  if (length == 0 || length > kLongest) {
    throw WireError("expected a message of at most " + std::to_string(kLongest) + " bytes, got " +
                    std::to_string(length));
  }
  std::vector<std::uint8_t> bytes(length);
  socket.Read(std::as_writable_bytes(std::span(bytes)), deadline);
  const std::uint8_t kind = bytes.front();
  if (kind > static_cast<std::uint8_t>(Talk::kBye)) {
    throw WireError("got a message of the unknown kind " + std::to_string(kind));
  }
  return {static_cast<Talk>(kind), nlohmann::json::from_cbor(bytes.begin() + 1, bytes.end())};
}

nlohmann::json ReceiveKind(Socket& socket, Talk kind, std::chrono::seconds patience) {
  TalkMessage message = Receive(socket, patience);
  if (message.kind == kind) return std::move(message.content);
  throw WireError("expected message " + std::to_string(static_cast<int>(kind)) + ", got " +
                  std::to_string(static_cast<int>(message.kind)));
}

int PathMtu(const Peer& peer) {
  // With TLS the socket is below the stream that is read and written.
  const Socket& socket = peer.heartbeat_wire ? peer.heartbeat_wire : peer.heartbeat;
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (getsockopt(socket.fd(), IPPROTO_IP, IP_MTU, &mtu, &length) == 0) return mtu;
  length = sizeof mtu;
  return getsockopt(socket.fd(), IPPROTO_IPV6, IPV6_MTU, &mtu, &length) == 0 ? mtu : 0;
}

}  // namespace troupe
