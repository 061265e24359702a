// A proven connection that carries join messages.
#pragma once

#include "cluster/join_message.hpp"
#include "cluster/sealed_channel.hpp"

namespace troupe {

struct JoinProtocol {
  using Message = JoinMessage;
  static std::vector<std::byte> Encode(const JoinMessage& message) {
    return troupe::Encode(message);
  }
  static JoinMessage Decode(std::span<const std::byte> bytes) { return DecodeJoinMessage(bytes); }
};
using JoinChannel = MessageChannel<JoinProtocol>;

}  // namespace troupe
