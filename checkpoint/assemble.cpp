#include "checkpoint/assemble.hpp"

#include <cstring>
#include <map>
#include <stdexcept>

namespace troupe {
namespace {

struct Whole {
  Buffer value;
  std::int64_t filled = 0;  ///< elements
};

[[noreturn]] void Refuse(const TensorPiece& piece, const std::string& why) {
  throw std::runtime_error("tensor " + piece.name + ": " + why);
}

void CheckFits(const TensorPiece& piece, const Whole& whole) {
  const Shape& shape = piece.value.shape();
  if (whole.value.shape() != piece.global_shape || whole.value.dtype() != piece.value.dtype()) {
    Refuse(piece, "pieces of " + ToString(whole.value.shape()) + " and of " +
                      ToString(piece.global_shape));
  }
  if (shape.size() != piece.global_shape.size() || piece.offsets.size() != shape.size()) {
    Refuse(piece, "a piece of shape " + ToString(shape) + " in " + ToString(piece.global_shape));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (piece.offsets[d] < 0 || piece.offsets[d] + shape[d] > piece.global_shape[d]) {
      Refuse(piece, "a piece that does not lie inside " + ToString(piece.global_shape));
    }
  }
}

/// Copies the piece run by run along the innermost dimension.
void Copy(const TensorPiece& piece, Whole& whole) {
  const Shape& shape = piece.value.shape();
  const std::int64_t count = piece.value.num_elements();
  if (count == 0) return;
  const std::size_t element = SizeOf(piece.value.dtype());
  const std::int64_t run = shape.empty() ? 1 : shape.back();
  for (std::int64_t first = 0; first < count; first += run) {
    std::int64_t rest = first;
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      at += (rest % shape[d] + piece.offsets[d]) * stride;
      rest /= shape[d];
      stride *= piece.global_shape[d];
    }
    std::memcpy(whole.value.data() + static_cast<std::size_t>(at) * element,
                piece.value.data() + static_cast<std::size_t>(first) * element,
                static_cast<std::size_t>(run) * element);
  }
  whole.filled += count;
}

}  // namespace

std::vector<NamedTensor> AssembleTensors(const std::vector<TensorPiece>& pieces) {
  std::map<std::string, Whole> tensors;
  for (const TensorPiece& piece : pieces) {
    auto [found, inserted] = tensors.try_emplace(piece.name);
    if (inserted) found->second.value = Buffer::Zeros(piece.global_shape, piece.value.dtype());
    CheckFits(piece, found->second);
    if (piece.owner) Copy(piece, found->second);
  }
  std::vector<NamedTensor> result;
  for (auto& [name, whole] : tensors) {
    const std::int64_t expected = whole.value.num_elements();
    if (whole.filled != expected) {
      throw std::runtime_error("tensor " + name + ": its owners hold " +
                               std::to_string(whole.filled) + " elements, expected " +
                               std::to_string(expected));
    }
    result.push_back({name, std::move(whole.value)});
  }
  return result;
}

}  // namespace troupe
