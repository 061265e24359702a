// What two processes of `troupe doctor` say to each other over the control connection that Join()
// made for them: process 0 asks, the others answer.
//
//   member  kReport    findings, address of its data plane (empty: it has none)
//   first   kLook      name of a file in the run directory, addresses of all planes (or none)
//   member  kLooked    what was wrong with the file, what was wrong with connecting; empty texts
//   first   kPing      kPong: wall clock in ns, MTU of the path
//   first   kTake      bytes: kReady once a receive is posted, kGot when it is there, kChecked
//   first   kGive      bytes: comes as a message of the data plane
//   first   kEnd       whether the job would fail: kLeft; then kBye, and all close
//
// A message is its length in 4 bytes, its kind in one, its content. Both ends are of one build:
// Join() refuses others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/doctor/checks.hpp"
#include "cluster/bytes.hpp"
#include "cluster/join.hpp"
#include "cluster/socket.hpp"

namespace troupe {

enum class Talk : std::uint8_t {
  kReport,
  kLook,
  kLooked,
  kPing,
  kPong,
  kTake,
  kReady,
  kGot,
  kChecked,
  kGive,
  kEnd,
  kLeft,
  kBye
};

struct TalkMessage {
  Talk kind = Talk::kBye;
  std::vector<std::byte> content;
};

/// `time` from now.
Deadline In(std::chrono::seconds time);
/// Of the clock that hosts may set apart.
std::int64_t WallClockNs();

/// Throws SocketError.
void Say(Socket& socket, Talk kind, std::vector<std::byte> content, Deadline deadline);
/// Throws SocketError, WireError for what is too long to be one.
TalkMessage Hear(Socket& socket, Deadline deadline);
/// Throws WireError when it is another one.
std::vector<std::byte> HearKind(Socket& socket, Talk kind, Deadline deadline);

void WriteFindings(ByteWriter& writer, const Findings& findings);
Findings ReadFindings(ByteReader& reader);

/// As the kernel knows it for the connection to `peer`; 0 when it does not say.
int PathMtu(const Peer& peer);

}  // namespace troupe
