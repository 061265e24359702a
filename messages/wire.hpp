// Serializes a message whose receiver is in another process.
//
// A message is a struct with a free function Fields(message), a std::tie of the members that
// travel. Floating-point numbers travel as their bits (CAF 0.17.6 garbles NaN and infinity, and an
// infinity stops its network thread for good). A Buffer travels as a reference to bytes that stay
// in their process (transport/tensor_store.hpp). Inside one process messages are delivered without
// serialization.
#pragma once

#include <type_traits>
#include <typeinfo>

#include <caf/deserializer.hpp>
#include <caf/error.hpp>
#include <caf/serializer.hpp>

namespace troupe {

/// A struct that can travel: Fields(x) returns references to its members.
template <class T>
concept Travels = requires(T& x) {
  Fields(x);
};

namespace wire {

/// Whether T is a `Template` of some types.
template <class T, template <class...> class Template>
inline constexpr bool kIs = false;
template <template <class...> class Template, class... Ts>
inline constexpr bool kIs<Template<Ts...>, Template> = true;

// The code for all messages is in wire.cpp alone: every source that sends a message would compile
// it again.

/// Writes or reads `message`, of a type in WorkMessages or NodeMessages (messages/list.hpp), or a
/// Failure.
caf::error CrossMessage(caf::serializer& sink, const std::type_info& type, void* message);
caf::error CrossMessage(caf::deserializer& source, const std::type_info& type, void* message);

}  // namespace wire

/// Called by CAF. Printing inspectors (void results) print nothing.
template <class F, Travels T>
typename F::result_type inspect(F& f, T& message) {
  if constexpr (!std::is_void_v<typename F::result_type>) {
    return wire::CrossMessage(f, typeid(T), &message);
  }
}

}  // namespace troupe
