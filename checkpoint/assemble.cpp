#include "checkpoint/assemble.hpp"

#include <cstring>
#include <map>
#include <stdexcept>

#include "modules/tensor_pieces.hpp"

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
  if (whole.value.shape() != piece.global_shape || whole.value.dtype() != piece.value.dtype()) {
    Refuse(piece, "pieces of " + ToString(whole.value.shape()) + " and of " +
                      ToString(piece.global_shape));
  }
  if (!LiesInside(piece)) {
    Refuse(piece, "a piece of " + ToString(piece.value.shape()) + " at " + ToString(piece.offsets) +
                      " does not lie inside " + ToString(piece.global_shape));
  }
}

void Copy(const TensorPiece& piece, Whole& whole) {
  const std::size_t element = SizeOf(piece.value.dtype());
  ForEachRun(piece, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::memcpy(whole.value.data() + static_cast<std::size_t>(to) * element,
                piece.value.data() + static_cast<std::size_t>(from) * element,
                static_cast<std::size_t>(count) * element);
  });
  whole.filled += piece.value.num_elements();
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
