#include "feed/message.hpp"

#include <array>
#include <type_traits>

namespace troupe {
namespace {

/// The fields of every message, in the order of docs/wire.md. `Bytes` is a ByteWriter or a ByteReader; the
/// checks concern what is read.
template <class Bytes>
struct Body {
  static constexpr bool kReads = std::is_same_v<Bytes, ByteReader>;
  Bytes& bytes;

  void Flag(bool& flag) const {
    auto number = static_cast<std::uint8_t>(flag);
    bytes.Field(number);
    if (number > 1) throw WireError("expected 0 or 1, got " + std::to_string(number));
    flag = number == 1;
  }
  void operator()(FeedHello& hello) const {
    bytes.Field(hello.name);
    bytes.Field(hello.build);
    bytes.Field(hello.facts);
    bytes.Field(hello.pid);
    bytes.Field(hello.credits);
  }
  void operator()(FeedPlaces& all) const {
    constexpr std::size_t kSmallest = 4 + 2;
    auto count = static_cast<std::uint32_t>(all.places.size());
    bytes.Field(count);
    if constexpr (kReads) {
      if (count > bytes.left() / kSmallest) {
        throw WireError("expected " + std::to_string(count) + " places, got " +
                        std::to_string(bytes.left()) + " bytes");
      }
      all.places.resize(count);
    }
    for (Address& place : all.places) {
      bytes.Field(place.host);
      bytes.Field(place.port);
    }
  }
  void operator()(FeedOrder& order) const {
    bytes.Field(order.number);
    bytes.Field(order.microbatch);
    Flag(order.ticket.train);
    bytes.Field(order.ticket.row);
    bytes.Field(order.ticket.source);
    bytes.Field(order.ticket.fields);
    bytes.Field(order.ticket.bytes);
  }
  void operator()(FeedSample& sample) const {
    bytes.Field(sample.number);
    bytes.Field(sample.size);
    bytes.Field(sample.read_ns);
    bytes.Field(sample.tokenize_ns);
    bytes.Field(sample.decode_ns);
    bytes.Field(sample.queued_ns);
  }
  void operator()(FeedBytes& piece) const {
    if constexpr (kReads) {
      const auto rest = bytes.Raw(bytes.left());
      piece.bytes.assign(rest.begin(), rest.end());
    } else {
      bytes.Raw(piece.bytes);
    }
  }
  void operator()(FeedFailure& failure) const {
    bytes.Field(failure.number);
    bytes.Field(failure.text);
  }
  void operator()(FeedEnd& end) const {
    bytes.Field(end.problem.text);
    auto fault = static_cast<std::uint8_t>(end.problem.fault);
    bytes.Field(fault);
    if (fault >= kNumJoinFaults) throw WireError("unknown fault " + std::to_string(fault));
    end.problem.fault = static_cast<JoinFault>(fault);
  }
};

}  // namespace

std::vector<std::byte> FeedProtocol::Encode(FeedMessage message) {
  ByteWriter writer;
  writer.U8(static_cast<std::uint8_t>(message.index()));
  std::visit(Body<ByteWriter>{writer}, message);
  return writer.Take();
}

FeedMessage FeedProtocol::Decode(std::span<const std::byte> bytes) {
  const std::array<FeedMessage, std::variant_size_v<FeedMessage>> by_kind = {
      FeedHello(), FeedPlaces(), FeedOrder(), FeedSample(), FeedBytes(), FeedFailure(), FeedEnd()};
  ByteReader reader(bytes);
  const std::uint8_t kind = reader.U8();
  if (kind >= by_kind.size()) throw WireError("unknown message " + std::to_string(kind));
  FeedMessage message = by_kind[kind];
  std::visit(Body<ByteReader>{reader}, message);
  reader.End();
  return message;
}

}  // namespace troupe
