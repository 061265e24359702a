// What a request is, as everyone who waits for its answer sees it: its unit, the ranks that it is
// for, and what people call it. Found in the message itself, so that no sender has to say it.
#pragma once

#include <cstdint>
#include <typeinfo>
#include <vector>

#include "messages/device.hpp"

namespace troupe {

/// A message to or from a set of devices is what it is of each.
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

/// What texts call a kind of request.
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
  switch (KindOf<T>().words.unit) {
    case RequestUnit::kNone:
      return 0;
    case RequestUnit::kRound:
      return RoundOf(request);
    case RequestUnit::kMicrobatch:
    case RequestUnit::kWindow:
      break;
  }
  return UnitOf(request);
}

/// The devices that it is for together; none where it is for its receiver.
template <class T>
std::vector<int> RanksOf(const T& request) {
  std::vector<int> ranks;
  if constexpr (requires { request.parts.front().first + 1; }) {
    for (const auto& [rank, command] : request.parts) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace troupe
