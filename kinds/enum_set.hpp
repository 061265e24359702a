// Sets of the values of an enum.
#pragma once

#include <cstddef>
#include <initializer_list>

namespace troupe {

/// A set of the values of an enum, by their numbers.
class NumberSet {
 public:
  constexpr void AddNumber(std::size_t number) { bits_ |= 1U << number; }
  constexpr bool HasNumber(std::size_t number) const { return (bits_ >> number & 1U) != 0; }
  /// Returns whether the two sets share a value.
  constexpr bool Meets(NumberSet other) const { return (bits_ & other.bits_) != 0; }
  friend constexpr bool operator==(const NumberSet&, const NumberSet&) = default;

 private:
  unsigned bits_ = 0;
};

/// A set of values of `Enum`.
template <class Enum>
class EnumSet : public NumberSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<Enum> values) {
    for (const Enum value : values) Add(value);
  }
  constexpr void Add(Enum value) { AddNumber(static_cast<std::size_t>(value)); }
  constexpr bool Has(Enum value) const { return HasNumber(static_cast<std::size_t>(value)); }
};

}  // namespace troupe
