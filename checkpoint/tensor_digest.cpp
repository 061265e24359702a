#include "checkpoint/tensor_digest.hpp"

#include <cstring>
#include <stdexcept>

#include "layout/mix_bits.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {
namespace {

/// The hash of an element. The multiplication spreads the bits of a place, and MixBits those of the
/// element, so that equal elements at other places count differently.
std::uint64_t HashOf(std::uint64_t bits, std::uint64_t place) {
  return MixBits(bits ^ (place + 1) * kMixStep);
}

template <class Bits>
std::uint64_t SumOf(const TensorPiece& piece) {
  std::uint64_t sum = 0;
  const std::byte* const data = piece.value.data();
  ForEachRun(piece, [&](std::int64_t from, std::int64_t place, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      Bits bits = 0;
      std::memcpy(&bits, data + static_cast<std::size_t>(from + i) * sizeof(Bits), sizeof(Bits));
      sum += HashOf(bits, static_cast<std::uint64_t>(place + i));
    }
  });
  return sum;
}

}  // namespace

std::uint64_t DigestOf(const TensorPiece& piece) {
  switch (SizeOf(piece.value.dtype())) {
    case 1:
      return SumOf<std::uint8_t>(piece);
    case 2:
      return SumOf<std::uint16_t>(piece);
    case 4:
      return SumOf<std::uint32_t>(piece);
    case 8:
      return SumOf<std::uint64_t>(piece);
    default:
      throw std::invalid_argument("digest: expected elements of 1, 2, 4 or 8 bytes");
  }
}

}  // namespace troupe
