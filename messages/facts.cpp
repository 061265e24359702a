#include "messages/facts.hpp"

#include <algorithm>
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

/// Total bytes of the tensors that `value` and its fields refer to.
template <class T>
std::int64_t Bytes(const T& value) {
  if constexpr (std::is_same_v<T, Buffer>) {
    return value.defined() ? static_cast<std::int64_t>(value.num_bytes()) : 0;
  } else if constexpr (Travels<T>) {
    return std::apply([](const auto&... field) { return (std::int64_t{0} + ... + Bytes(field)); },
                      Fields(const_cast<T&>(value)));
  } else if constexpr (wire::kIs<T, std::pair>) {
    return Bytes(value.first) + Bytes(value.second);
  } else if constexpr (wire::kIs<T, std::shared_ptr>) {
    return value ? Bytes(*value) : 0;
  } else if constexpr (wire::kIs<T, std::vector> || wire::kIs<T, std::map>) {
    std::int64_t sum = 0;
    if constexpr (!std::is_arithmetic_v<typename T::value_type>) {
      for (const auto& item : value) sum += Bytes(item);
    }
    return sum;
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
  if (kIsOneOf<T, StateCopied, ShardStored, StateSaved, ShardLoaded>) return kCheckpoint;
  return kOther;
}

/// The role of a sample, by what took longest.
MessageRole RoleOf(const std::vector<std::int64_t>& phase_ns) {
  const auto phase = std::ranges::max_element(phase_ns) - phase_ns.begin();
  return static_cast<MessageRole>(static_cast<std::ptrdiff_t>(MessageRole::kSampleRead) + phase);
}

template <class T>
MessageFacts FactsOf(const caf::type_erased_tuple& content) {
  const T& message = content.get_as<T>(0);
  MessageFacts facts{.unit = UnitOf(message),
                     .round = RoundOf(message),
                     .bytes = Bytes(message),
                     .step = StepOf(message),
                     .role = RoleOf<T>()};
  if constexpr (requires { message.sample.source; }) {
    facts.source = message.sample.source;
  } else if constexpr (DataPhaseMessage<T>) {
    facts.source = message.source;
  } else if constexpr (std::is_same_v<T, MachinePrepared>) {
    facts.source = message.source;
    facts.role = RoleOf(message.arrived.phase_ns);
  }
  if constexpr (requires { message.asked; }) facts.asked = message.asked;
  return facts;
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
    if constexpr (std::is_same_v<T, caf::error>) {
      by_type[typeid(T)] = {number, nullptr};
      names.emplace_back("error");
    } else {
      by_type[typeid(T)] = {number, FactsOf<T>};
      names.push_back(NameOfType(typeid(typename OfSet<T>::Each)));
    }
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
