// What a trace says of a message beside who sent it to whom: found in the message itself, so that
// nobody who sends or handles one has to say it.
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
  std::int64_t unit = -1;   ///< microbatch or window; -1: of none
  std::int64_t round = -1;  ///< -1: of none, or it does not say
  std::int64_t bytes = 0;   ///< of the tensors that it names
  std::int64_t step = -1;   ///< training step that its round is, from 1; 0: an evaluation; -1: it
                            ///< does not say
  MessageRole role = MessageRole::kOther;
  bool asked = false;  ///< it brings bytes of another process that were asked for
};

/// A kind of message that is traced.
struct MessageType {
  std::uint16_t number = 0;  ///< index into MessageTypeNames
  MessageFacts (*facts)(const caf::type_erased_tuple& content) = nullptr;
};

/// Null: not one that is traced. Traced are those that actors work by, and errors; not those that
/// watch over them.
const MessageType* FindMessageType(const std::type_info& type);
/// "Activation", "RunForward", by number. A message to one device and the same to a set of them
/// have one name.
std::vector<std::string> MessageTypeNames();

/// The same by type; that of the C++ type where it is not traced, "a message" of null.
std::string MessageName(const std::type_info* type);

}  // namespace troupe
