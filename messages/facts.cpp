#include "messages/facts.hpp"

#include <cstdlib>
#include <cxxabi.h>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <unordered_map>
#include <utility>

#include <caf/error.hpp>
#include <caf/type_erased_tuple.hpp>

#include "messages/list.hpp"
#include "messages/request.hpp"

namespace troupe {
namespace {

// Total bytes of the tensors that a message's fields refer to.
std::int64_t Bytes(const Buffer& buffer) {
  return buffer.defined() ? static_cast<std::int64_t>(buffer.num_bytes()) : 0;
}
template <class T>
std::int64_t Bytes(const T& value);
template <class T>
std::int64_t Bytes(const std::vector<T>& list) {
  std::int64_t sum = 0;
  if constexpr (!std::is_arithmetic_v<T>) {
    for (const T& item : list) sum += Bytes(item);
  }
  return sum;
}
template <class K, class V>
std::int64_t Bytes(const std::map<K, V>& map) {
  std::int64_t sum = 0;
  for (const auto& [key, value] : map) sum += Bytes(value);
  return sum;
}
template <class A, class B>
std::int64_t Bytes(const std::pair<A, B>& pair) {
  return Bytes(pair.first) + Bytes(pair.second);
}
template <class T>
std::int64_t Bytes(const std::shared_ptr<T>& pointer) {
  return pointer ? Bytes(*pointer) : 0;
}
template <class T>
std::int64_t Bytes(const T& value) {
  if constexpr (Travels<T>) {
    return std::apply([](const auto&... field) { return (std::int64_t{0} + ... + Bytes(field)); },
                      Fields(const_cast<T&>(value)));
  } else {
    return 0;
  }
}

/// The step of a message, if it holds a round or an update step.
template <class T>
std::int64_t StepOf(const T& x) {
  if constexpr (requires { x.round.step; }) {
    return x.round.train ? x.round.step + 1 : 0;
  } else if constexpr (requires { x.step.step; }) {
    return x.step.step;
  } else if constexpr (requires { x.parts.front().second; }) {
    return x.parts.empty() ? -1 : StepOf(x.parts.front().second);
  } else {
    return -1;
  }
}

template <class T, class... Ts>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Ts> || ...);

template <class Message>
constexpr MessageRole RoleOf() {
  using enum MessageRole;
  using T = typename OfSet<Message>::Each;
  if (kIsOneOf<T, Activation, Slice>) return kActivation;
  if (kIsOneOf<T, Gradient, GradientSlice>) return kGradient;
  if (kIsOneOf<T, Input>) return kInput;
  if (kIsOneOf<T, ForwardDone>) return kForwardDone;
  if (kIsOneOf<T, BackwardDone>) return kBackwardDone;
  if (kIsOneOf<T, BackwardWeightsDone>) return kWeightsDone;
  if (kIsOneOf<T, BackwardsDone>) return kReplicaDone;
  if (kIsOneOf<T, GradientsReduced>) return kGradientsReduced;
  if (kIsOneOf<T, SquaredNorm, ApplyUpdate>) return kNorm;
  if (kIsOneOf<T, ParametersUpdated, Updated, UpdateDone>) return kUpdated;
  if (kIsOneOf<T, RoundBegin>) return kStepBegin;
  if (kIsOneOf<T, StageReport>) return kStepEnd;
  if (kIsOneOf<T, ExchangeDone>) return kExchanged;
  if (kIsOneOf<T, StateOffloaded, StateRestored>) return kStateMoved;
  if (kIsOneOf<T, ShardStored>) return kCheckpoint;
  return kOther;
}

template <class T>
bool AskedOf(const T& x) {
  if constexpr (requires { x.asked; }) {
    return x.asked;
  } else {
    return false;
  }
}

template <class T>
MessageFacts FactsOf(const caf::type_erased_tuple& content) {
  const T& message = content.get_as<T>(0);
  return {UnitOf(message), RoundOf(message), Bytes(message),
          StepOf(message), RoleOf<T>(),      AskedOf(message)};
}

/// The name of the C++ type, without the namespace.
std::string NameOfType(const std::type_info& type) {
  int status = 0;
  char* const readable = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : type.name();
  std::free(readable);
  for (std::size_t at = name.find("troupe::"); at != std::string::npos;
       at = name.find("troupe::")) {
    name.erase(at, 8);
  }
  return name;
}

struct Types {
  std::unordered_map<std::type_index, MessageType> by_type;
  std::vector<std::string> names;

  template <class T>
  void Add() {
    const auto number = static_cast<std::uint16_t>(names.size());
    MessageFacts (*facts)(const caf::type_erased_tuple&) = nullptr;
    if constexpr (!std::is_same_v<T, caf::error>) facts = FactsOf<T>;
    by_type[typeid(T)] = {number, facts};
    const bool error = std::is_same_v<T, caf::error>;
    names.push_back(error ? "error" : NameOfType(typeid(typename OfSet<T>::Each)));
  }
  Types() {
    Add<caf::error>();
    decltype(WorkMessages() + OwnMessages())::ForEach([this]<class Message>() { Add<Message>(); });
  }
};

const Types& All() {
  static const Types types;
  return types;
}

}  // namespace

const MessageType* FindMessageType(const std::type_info& type) {
  const auto& types = All().by_type;
  const auto found = types.find(type);
  return found == types.end() ? nullptr : &found->second;
}

std::vector<std::string> MessageTypeNames() { return All().names; }

std::string MessageName(const std::type_info* type) {
  if (type == nullptr) return "a message";
  const MessageType* const known = FindMessageType(*type);
  return known == nullptr ? NameOfType(*type) : All().names[known->number];
}

}  // namespace troupe
