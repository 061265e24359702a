#include "checkpoint/assemble.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "layout/route.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {
namespace {

/// The pieces of one tensor that are owned.
struct Whole {
  Shape shape;
  DType dtype = DType::kFloat32;
  std::vector<TensorPiece> pieces;
};

[[noreturn]] void Refuse(const TensorPiece& piece, const std::string& why) {
  throw std::runtime_error("tensor " + piece.name + ": " + why);
}

void CheckFits(const TensorPiece& piece, const Whole& whole) {
  if (whole.shape != piece.global_shape || whole.dtype != piece.value.dtype()) {
    Refuse(piece, "pieces of " + ToString(whole.shape) + " and of " + ToString(piece.global_shape));
  }
  if (!LiesInside(piece)) {
    Refuse(piece, "a piece of " + ToString(piece.value.shape()) + " at " + ToString(piece.offsets) +
                      " does not lie inside " + ToString(piece.global_shape));
  }
}

std::map<std::string, Whole> CheckedTensors(const std::vector<TensorPiece>& pieces) {
  std::map<std::string, Whole> tensors;
  for (const TensorPiece& piece : pieces) {
    const Whole empty{.shape = piece.global_shape, .dtype = piece.value.dtype(), .pieces = {}};
    Whole& whole = tensors.try_emplace(piece.name, empty).first->second;
    CheckFits(piece, whole);
    if (piece.owner) whole.pieces.push_back(piece);
  }
  for (const auto& [name, whole] : tensors) {
    std::int64_t owned = 0;
    for (const TensorPiece& piece : whole.pieces) owned += piece.value.num_elements();
    if (owned == NumElements(whole.shape)) continue;
    throw std::runtime_error("tensor " + name + ": its owners hold " + std::to_string(owned) +
                             " elements, expected " + std::to_string(NumElements(whole.shape)));
  }
  return tensors;
}

/// The rows of the whole that a piece has.
Interval RowsOf(const TensorPiece& piece) {
  return {piece.offsets[0], piece.offsets[0] + piece.value.shape()[0]};
}

/// The part of a piece in some rows of the whole, in a whole of these rows only.
TensorPiece Within(const TensorPiece& piece, const Interval& rows) {
  const Interval own = RowsOf(piece);
  const std::int64_t begin = std::max(own.begin, rows.begin);
  TensorPiece part = piece;
  part.value = piece.value.Rows(begin - own.begin, std::min(own.end, rows.end) - own.begin);
  part.global_shape[0] = rows.end - rows.begin;
  part.offsets[0] = begin - rows.begin;
  return part;
}

constexpr std::int64_t kBandBytes = 8 << 20;

void WriteInBands(const Whole& whole, const FetchPiece& fetch, const ByteSink& sink) {
  if (whole.shape.empty()) {
    const Buffer value = fetch(whole.pieces.front());
    return sink({value.data(), value.num_bytes()});
  }
  const std::int64_t num_rows = whole.shape[0];
  const std::int64_t num_bytes =
      static_cast<std::int64_t>(SizeOf(whole.dtype)) * NumElements(whole.shape);
  const auto num_bands = static_cast<int>(std::min(num_rows, num_bytes / kBandBytes + 1));
  for (int band = 0; band < num_bands; ++band) {
    const Interval rows = PartOf(num_rows, num_bands, band);
    Shape shape = whole.shape;
    shape[0] = rows.end - rows.begin;
    const Buffer bytes = Buffer::Allocate(shape, whole.dtype);
    std::int64_t filled = 0;
    for (const TensorPiece& piece : whole.pieces) {
      const Interval own = RowsOf(piece);
      if (own.end <= rows.begin || own.begin >= rows.end) continue;
      TensorPiece part = Within(piece, rows);
      part.value = fetch(part);
      filled += CopyPiece(part, bytes);
    }
    if (filled != bytes.num_elements()) {
      Refuse(whole.pieces.front(), "its owners hold " + std::to_string(filled) +
                                       " elements of rows " + std::to_string(rows.begin) + " to " +
                                       std::to_string(rows.end) + ", expected " +
                                       std::to_string(bytes.num_elements()));
    }
    sink({bytes.data(), bytes.num_bytes()});
  }
}

}  // namespace

std::int64_t CopyPiece(const TensorPiece& piece, const Buffer& whole) {
  const std::size_t element = SizeOf(piece.value.dtype());
  ForEachRun(piece, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::memcpy(whole.data() + static_cast<std::size_t>(to) * element,
                piece.value.data() + static_cast<std::size_t>(from) * element,
                static_cast<std::size_t>(count) * element);
  });
  return piece.value.num_elements();
}

std::vector<NamedTensor> AssembleTensors(const std::vector<TensorPiece>& pieces) {
  std::vector<NamedTensor> result;
  for (const auto& [name, whole] : CheckedTensors(pieces)) {
    result.push_back({name, Buffer::Zeros(whole.shape, whole.dtype)});
    for (const TensorPiece& piece : whole.pieces) CopyPiece(piece, result.back().value);
  }
  return result;
}

std::vector<TensorToWrite> TensorsToWrite(const std::vector<TensorPiece>& pieces,
                                          const FetchPiece& fetch) {
  std::vector<TensorToWrite> result;
  for (auto& [name, whole] : CheckedTensors(pieces)) {
    result.push_back({.name = name,
                      .type = StoredTypeOf(whole.dtype),
                      .shape = whole.shape,
                      .write = [whole = whole, fetch](const ByteSink& sink) {
                        WriteInBands(whole, fetch, sink);
                      }});
  }
  return result;
}

}  // namespace troupe
