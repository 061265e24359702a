// What is said while a job meets, as structs and as bytes (docs/wire.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cluster/bytes.hpp"
#include "cluster/join.hpp"

namespace troupe {

/// Process 0 to all: the job does not begin, and why. Final.
struct Refusal {
  JoinProblem problem;
};
/// Process 0 to one: not now, and why; it may ask again.
struct NotNow {
  std::string text;
};
/// To process 0: all connections of this process are there.
struct Ready {};
/// To process 0: some connection of this process cannot be made.
struct MeshFailure {
  JoinProblem problem;
};
/// Process 0 to all: everybody is ready.
struct Go {};

using JoinMessage = std::variant<Hello, Roster, Refusal, NotNow, Ready, MeshFailure, Go>;

/// Of a Roster, what all members have in common (num_processes, build, config, attempt) is not
/// sent.
std::vector<std::byte> Encode(const JoinMessage& message);
/// Throws WireError on anything that Encode does not make.
JoinMessage DecodeJoinMessage(std::span<const std::byte> bytes);

}  // namespace troupe
