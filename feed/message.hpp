// What a process of a job and a feed machine say to each other, as structs and as bytes (docs/wire.md).
//
//   feed machine                              process
//   FeedHello                        ──▶        compares: FeedEnd if it does not fit
//                                    ◀──        FeedPlaces: the processes to connect to
//                                    ◀──        FeedOrder, at most `credits` without an answer
//   FeedSample, then its FeedBytes   ──▶
//   or FeedFailure
//                                    ◀──        FeedEnd: the job has ended
//
// Samples are the only thing that a machine sends. None of their bytes is an address, a path or a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cluster/join_problem.hpp"
#include "cluster/sealed_channel.hpp"
#include "modules/input_source.hpp"

namespace troupe {

struct FeedHello {
  std::string name;   ///< "f1"
  std::string build;  ///< version and commit: must be equal
  std::string facts;  ///< what samples depend on, one "key = value" a line: must be equal
  std::int64_t pid = 0;
  std::int32_t credits = 0;  ///< the most samples that each process may ask for at a time
};

/// From process 0: where the other processes of the job take samples. Replaces the list before.
struct FeedPlaces {
  std::vector<Address> places;
};

struct FeedOrder {
  std::int64_t number = 0;
  std::int64_t microbatch = 0;
  SampleTicket ticket;
};

struct FeedSample {
  std::int64_t number = 0;
  std::int64_t size = 0;  ///< bytes
  std::int64_t read_ns = 0;
  std::int64_t tokenize_ns = 0;
  std::int64_t decode_ns = 0;
  std::int64_t queued_ns = 0;
};
/// The next bytes of the last FeedSample.
struct FeedBytes {
  std::vector<std::byte> bytes;
};
/// The sample cannot be prepared here.
struct FeedFailure {
  std::int64_t number = 0;
  std::string text;
};

/// The last message to a machine.
struct FeedEnd {
  JoinProblem
      problem;  ///< kDone: the job is done; kEnded: it has failed; else it has no use for the machine
};

using FeedMessage =
    std::variant<FeedHello, FeedPlaces, FeedOrder, FeedSample, FeedBytes, FeedFailure, FeedEnd>;

struct FeedProtocol {
  using Message = FeedMessage;
  static std::vector<std::byte> Encode(FeedMessage message);
  /// Throws WireError on bytes that Encode does not produce.
  static FeedMessage Decode(std::span<const std::byte> bytes);
};
using FeedChannel = MessageChannel<FeedProtocol>;

/// The most bytes of one FeedBytes.
inline constexpr std::size_t kFeedPiece = kLargestPayload - 64;

/// The key by which machines and processes prove to each other that they belong together.
inline RunKey FeedJoinKey(const RunKey& feed_key) { return feed_key.Derive("join"); }

/// Either side closes a connection when nothing that it sends arrives for so long.
inline constexpr std::chrono::seconds kFeedLostAfter{15};

/// The numbers in handshakes. All processes of a job have one number, so a machine needs only addresses.
inline constexpr ProcessId kFeedMachine = -2;
inline constexpr ProcessId kFeedTaker = 0;

}  // namespace troupe
