// Facts about a request for wait lists: its unit, its ranks and its name in texts. They are read
// from the message itself, so no sender has to supply them.
#pragma once

#include <cstdint>
#include <typeinfo>
#include <vector>

#include "messages/device.hpp"

namespace troupe {

/// The message of each device in a message to or from a set of them.
template <class T>
struct OfSet {
  using Each = T;
};
template <class T>
struct OfSet<ToSet<T>> : OfSet<T> {};
template <class T>
struct OfSet<FromSet<T>> : OfSet<T> {};

template <class T>
std::int64_t UnitOf(const T& x) {
  if constexpr (requires { x.unit; }) {
    return x.unit;
  } else if constexpr (requires { x.microbatch; }) {
    return x.microbatch;
  } else if constexpr (requires { x.pass.unit; }) {
    return x.pass.unit;
  } else if constexpr (requires { x.parts.front().second; }) {
    return x.parts.empty() ? -1 : UnitOf(x.parts.front().second);
  } else {
    return -1;
  }
}

template <class T>
std::int64_t RoundOf(const T& x) {
  if constexpr (requires { x.round.number; }) {
    return x.round.number;
  } else if constexpr (requires { x.round + 1; }) {
    return x.round;
  } else if constexpr (requires { x.parts.front().second; }) {
    return x.parts.empty() ? -1 : RoundOf(x.parts.front().second);
  } else {
    return -1;
  }
}

/// A kind of request, and its name in texts.
struct RequestKind {
  const std::type_info* type = nullptr;
  RequestWords words;  ///< of its message
};
template <class T>
RequestKind KindOf() {
  using Each = typename OfSet<T>::Each;
  RequestKind kind{&typeid(T), {}};
  if constexpr (requires { Each::kWords; }) kind.words = Each::kWords;
  return kind;
}

/// The number of the unit that its words name.
template <class T>
std::int64_t NumberOf(const T& request) {
  const WaitUnit unit = KindOf<T>().words.unit;
  if (unit == WaitUnit::kNone) return 0;
  return unit == WaitUnit::kRound ? RoundOf(request) : UnitOf(request);
}

/// The set of devices that it goes to; empty if it is for its receiver alone.
template <class T>
std::vector<int> RanksOf(const T& request) {
  std::vector<int> ranks;
  if constexpr (requires { request.parts.front().first + 1; }) {
    for (const auto& [rank, command] : request.parts) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace troupe
