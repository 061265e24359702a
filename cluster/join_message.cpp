#include "cluster/join_message.hpp"

#include <array>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe {
namespace {

/// The fields of every message, in the order of docs/wire.md. `Bytes` is a ByteWriter or a
/// ByteReader; the checks concern what is read.
template <class Bytes>
struct Body {
  Bytes& bytes;

  /// The number of items, each of `smallest` bytes or more.
  template <class Item>
  void Count(std::vector<Item>& items, std::size_t smallest) const {
    auto count = static_cast<std::uint32_t>(items.size());
    bytes.Field(count);
    if constexpr (std::is_same_v<Bytes, ByteReader>) {
      if (count > bytes.left() / smallest) {
        throw WireError("expected " + std::to_string(count) + " items, got " +
                        std::to_string(bytes.left()) + " bytes");
      }
      items.resize(count);
    }
  }
  void Member(Hello& hello) const {
    bytes.Field(hello.process);
    bytes.Field(hello.name);
    bytes.Field(hello.host);
    bytes.Field(hello.address.host);
    std::uint32_t port = hello.address.port;
    bytes.Field(port);
    if (port > 65535) throw WireError("expected a port, got " + std::to_string(port));
    hello.address.port = static_cast<std::uint16_t>(port);
    bytes.Field(hello.pid);
  }
  void Problem(JoinProblem& problem) const {
    bytes.Field(problem.text);
    auto fault = static_cast<std::uint8_t>(problem.fault);
    bytes.Field(fault);
    if (fault >= kNumJoinFaults) throw WireError("unknown join fault " + std::to_string(fault));
    problem.fault = static_cast<JoinFault>(fault);
  }
  void operator()(Hello& hello) const {
    Member(hello);
    bytes.Field(hello.num_processes);
    bytes.Field(hello.build);
    bytes.Field(hello.config);
    bytes.Field(hello.generation);
    bytes.Field(hello.former);
    Count(hello.held, 4 + 4 + 8 + 2 * 4);
    for (HeldState& state : hello.held) {
      bytes.Field(state.folder);
      bytes.Field(state.manifest_sum);
      bytes.Field(state.step);
      for (auto* const names : {&state.all_files, &state.files}) {
        Count(*names, 4);
        for (std::string& file : *names) bytes.Field(file);
      }
    }
  }
  void operator()(Roster& roster) const {
    Count(roster.members, 3 * 4 + 4 + 4 + 8);  // three lengths, process, port and pid
    for (Hello& hello : roster.members) Member(hello);
    bytes.Field(roster.nonce);
    bytes.Field(roster.generation);
    bytes.Field(roster.run_directory);
  }
  void operator()(Refusal& refusal) const { Problem(refusal.problem); }
  void operator()(NotNow& not_now) const { bytes.Field(not_now.text); }
  void operator()(MeshFailure& failure) const { Problem(failure.problem); }
  void operator()(Ready&) const {}
  void operator()(Go&) const {}
  void operator()(TakePlace& place) const {
    bytes.Field(place.process);
    bytes.Field(place.generation);
  }
};

}  // namespace

std::vector<std::byte> Encode(JoinMessage message) {
  ByteWriter writer;
  writer.U8(static_cast<std::uint8_t>(message.index()));
  std::visit(Body<ByteWriter>{writer}, message);
  return writer.Take();
}

JoinMessage DecodeJoinMessage(std::span<const std::byte> bytes) {
  const std::array<JoinMessage, std::variant_size_v<JoinMessage>> by_kind = {
      Hello(), Roster(), Refusal(), NotNow(), Ready(), MeshFailure(), Go(), TakePlace()};
  ByteReader reader(bytes);
  const std::uint8_t kind = reader.U8();
  if (kind >= by_kind.size()) throw WireError("unknown message " + std::to_string(kind));
  JoinMessage message = by_kind[kind];
  std::visit(Body<ByteReader>{reader}, message);
  reader.End();
  return message;
}

}  // namespace troupe
