#include "cluster/join_message.hpp"

#include <string>

namespace troupe {
namespace {

void Write(ByteWriter& writer, const Address& address) {
  writer.Text(address.host);
  writer.U32(address.port);
}

Address ReadAddress(ByteReader& reader) {
  Address address;
  address.host = reader.Text();
  const std::uint32_t port = reader.U32();
  if (port > 65535) throw WireError("expected a port, got " + std::to_string(port));
  address.port = static_cast<std::uint16_t>(port);
  return address;
}

struct Body {
  ByteWriter& writer;

  void Member(const Hello& hello) const {
    writer.I32(hello.process);
    writer.Text(hello.name);
    writer.Text(hello.host);
    Write(writer, hello.address);
    writer.I64(hello.pid);
  }
  void Problem(const JoinProblem& problem) const {
    writer.Text(problem.text);
    writer.U8(static_cast<std::uint8_t>(problem.fault));
  }
  void operator()(const Hello& hello) const {
    Member(hello);
    writer.I32(hello.num_processes);
    writer.Text(hello.build);
    writer.Text(hello.config);
    writer.I64(hello.attempt);
  }
  void operator()(const Roster& roster) const {
    writer.U32(static_cast<std::uint32_t>(roster.members.size()));
    for (const Hello& hello : roster.members) Member(hello);
    writer.U64(roster.nonce);
    writer.Text(roster.run_directory);
  }
  void operator()(const Refusal& refusal) const { Problem(refusal.problem); }
  void operator()(const NotNow& not_now) const { writer.Text(not_now.text); }
  void operator()(const MeshFailure& failure) const { Problem(failure.problem); }
  void operator()(const Ready&) const {}
  void operator()(const Go&) const {}
};

Hello ReadMember(ByteReader& reader) {
  Hello hello;
  hello.process = reader.I32();
  hello.name = reader.Text();
  hello.host = reader.Text();
  hello.address = ReadAddress(reader);
  hello.pid = reader.I64();
  return hello;
}

Hello ReadHello(ByteReader& reader) {
  Hello hello = ReadMember(reader);
  hello.num_processes = reader.I32();
  hello.build = reader.Text();
  hello.config = reader.Text();
  hello.attempt = reader.I64();
  return hello;
}

Roster ReadRoster(ByteReader& reader) {
  // The smallest member: three lengths, process, port and pid.
  constexpr std::size_t kSmallestMember = 3 * 4 + 4 + 4 + 8;
  const std::size_t num_members = reader.U32();
  if (num_members > reader.left() / kSmallestMember)
    throw WireError("expected a roster of " + std::to_string(num_members) + " members, got " +
                    std::to_string(reader.left()) + " bytes");
  Roster roster;
  roster.members.reserve(num_members);
  for (std::size_t i = 0; i < num_members; ++i) roster.members.push_back(ReadMember(reader));
  roster.nonce = reader.U64();
  roster.run_directory = reader.Text();
  return roster;
}

JoinProblem ReadProblem(ByteReader& reader) {
  JoinProblem problem;
  problem.text = reader.Text();
  const std::uint8_t fault = reader.U8();
  if (fault >= kNumJoinFaults) throw WireError("unknown join fault " + std::to_string(fault));
  problem.fault = static_cast<JoinFault>(fault);
  return problem;
}

JoinMessage ReadBody(std::uint8_t kind, ByteReader& reader) {
  switch (kind) {
    case 0:
      return ReadHello(reader);
    case 1:
      return ReadRoster(reader);
    case 2:
      return Refusal{ReadProblem(reader)};
    case 3:
      return NotNow{reader.Text()};
    case 4:
      return Ready{};
    case 5:
      return MeshFailure{ReadProblem(reader)};
    case 6:
      return Go{};
    default:
      throw WireError("unknown message " + std::to_string(kind));
  }
}

}  // namespace

std::vector<std::byte> Encode(const JoinMessage& message) {
  ByteWriter writer;
  writer.U8(static_cast<std::uint8_t>(message.index()));
  std::visit(Body{writer}, message);
  return writer.Take();
}

JoinMessage DecodeJoinMessage(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const std::uint8_t kind = reader.U8();
  JoinMessage message = ReadBody(kind, reader);
  reader.End();
  return message;
}

}  // namespace troupe
