// Messages between two processes of `troupe doctor`, over the control connection of Join(). Process
// 0 sends requests, the others answer:
//
//   sender  message    contents and answer
//   member  kReport    findings, address of its data plane (empty: it has none)
//   first   kLook      name of a file in the run directory, addresses of all planes (or none)
//   member  kLooked    error of the file, error of connecting ("" if none)
//   first   kPing      kPong: wall clock in ns, MTU of the path
//   first   kTake      bytes: kReady once a receive is posted, kGot when it is there, kChecked
//   first   kGive      bytes: comes as a message of the data plane
//   first   kEnd       whether the job would fail: kLeft; then kBye, and all close
//
// A message is its length in 4 bytes, its kind in one, its content as CBOR (RFC 8949). Both ends
// are of one build: Join() refuses others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
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

// An unknown verdict is read as the first.
NLOHMANN_JSON_SERIALIZE_ENUM(Verdict, {{Verdict::kFailure, "failure"},
                                       {Verdict::kWarning, "warning"},
                                       {Verdict::kOk, "ok"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, name, verdict, line, advice)

struct TalkMessage {
  Talk kind = Talk::kBye;
  nlohmann::json content;
};

/// The address of a data plane; empty: there is none.
using PlaneAddress = std::vector<std::byte>;

/// Time for an answer that needs no network except the connection itself.
inline constexpr std::chrono::seconds kAnswerTime{30};

/// The wall clock, which may differ between hosts.
std::int64_t WallClockNs();

/// Throws SocketError.
void Send(Socket& socket, Talk kind, const nlohmann::json& content = {});
/// Throws SocketError, WireError for a message that is too long or of an unknown kind, and
/// nlohmann::json::exception for one that is not CBOR.
TalkMessage Receive(Socket& socket, std::chrono::seconds patience);
/// Returns the content of the next message. Throws as Receive, and WireError if it is not a `kind`.
nlohmann::json ReceiveKind(Socket& socket, Talk kind, std::chrono::seconds patience = kAnswerTime);

/// The MTU of the connection to `peer`, as the kernel reports it; 0 if it does not.
int PathMtu(const Peer& peer);

}  // namespace troupe
