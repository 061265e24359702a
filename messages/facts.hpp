// The facts about a message that a trace records besides its sender and receiver. They are read
// from the message itself, so no sender or handler has to supply them.
#pragma once

#include <cstdint>
#include <string>
#include <typeinfo>
#include <vector>

#include "trace/record.hpp"

namespace caf {
class type_erased_tuple;
}

namespace troupe {

struct MessageFacts {
  std::int64_t unit = -1;   ///< microbatch or window; -1: of no unit
  std::int64_t round = -1;  ///< -1: of no round, or unknown
  std::int64_t bytes = 0;   ///< of the tensors that it refers to
  std::int64_t step = -1;   ///< training step of its round, from 1; 0: an evaluation; -1: unknown
  MessageRole role = MessageRole::kOther;
  std::int32_t source = -1;  ///< of the data it is about, as SampleTicket::source
  bool asked = false;        ///< it delivers bytes that were requested from another process
};

/// A kind of message that is traced.
struct MessageType {
  std::uint16_t number = 0;  ///< index into MessageTypeNames
  MessageFacts (*facts)(const caf::type_erased_tuple& content) = nullptr;
};

/// Null: it is not traced. WorkMessages, OwnMessages and errors are traced; NodeMessages are not.
const MessageType* FindMessageType(const std::type_info& type);
/// "Activation", "RunForward", by number. A message to one device and the same to a set of them
/// have one name.
std::vector<std::string> MessageTypeNames();

/// The same by type; the C++ type's name if it is not traced, "a message" for null.
std::string MessageName(const std::type_info* type);

}  // namespace troupe
