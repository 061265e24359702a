// The messages of a meeting, as structs and as bytes (docs/wire.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cluster/bytes.hpp"
#include "cluster/join.hpp"

namespace troupe {

/// Process 0 to all: the job does not start, and why. Final.
struct Refusal {
  JoinProblem problem;
};
/// Process 0 to one: the reason for not joining now; the process may retry.
struct NotNow {
  std::string text;
};
/// To process 0: all connections of this process are made.
struct Ready {};
/// To process 0: a connection of this process cannot be made.
struct MeshFailure {
  JoinProblem problem;
};
/// Process 0 to all: every process is ready.
struct Go {};
/// Process 0 to a spare: it takes this place. It joins again, as that process.
struct TakePlace {
  ProcessId process = 0;
  std::int64_t generation = 0;
};

using JoinMessage = std::variant<Hello, Roster, Refusal, NotNow, Ready, MeshFailure, Go, TakePlace>;

/// A Roster omits the fields that all members share (num_processes, build, config, generation).
std::vector<std::byte> Encode(JoinMessage message);
/// Throws WireError on bytes that Encode does not produce.
JoinMessage DecodeJoinMessage(std::span<const std::byte> bytes);

}  // namespace troupe
