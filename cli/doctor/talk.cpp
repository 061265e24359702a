#include "cli/doctor/talk.hpp"

#include <algorithm>
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

void Send(Socket& socket, Talk kind, std::vector<std::byte> content) {
  ByteWriter writer;
  writer.U32(static_cast<std::uint32_t>(content.size() + 1));
  writer.U8(static_cast<std::uint8_t>(kind));
  writer.Raw(content);
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
  std::vector<std::byte> bytes(length);
  socket.Read(bytes, deadline);
  const auto kind = std::to_integer<std::uint8_t>(bytes.front());
  if (kind > static_cast<std::uint8_t>(Talk::kBye)) {
    throw WireError("got a message of the unknown kind " + std::to_string(kind));
  }
  bytes.erase(bytes.begin());
  return {static_cast<Talk>(kind), std::move(bytes)};
}

std::vector<std::byte> ReceiveKind(Socket& socket, Talk kind, std::chrono::seconds patience) {
  TalkMessage message = Receive(socket, patience);
  if (message.kind == kind) return std::move(message.content);
  throw WireError("expected message " + std::to_string(static_cast<int>(kind)) + ", got " +
                  std::to_string(static_cast<int>(message.kind)));
}

void WriteFindings(ByteWriter& writer, const Findings& findings) {
  writer.U32(static_cast<std::uint32_t>(findings.size()));
  for (const Finding& finding : findings) {
    writer.Text(finding.name);
    writer.U8(static_cast<std::uint8_t>(finding.verdict));
    writer.Text(finding.line);
    writer.Text(finding.advice);
  }
}

Findings ReadFindings(ByteReader& reader) {
  Findings findings;
  for (std::uint32_t left = reader.U32(); left > 0; --left) {
    Finding finding;
    finding.name = reader.Text();
    const std::uint8_t verdict = reader.U8();
    finding.verdict =
        static_cast<Verdict>(std::min(verdict, static_cast<std::uint8_t>(Verdict::kFailure)));
    finding.line = reader.Text();
    finding.advice = reader.Text();
    findings.push_back(std::move(finding));
  }
  return findings;
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
