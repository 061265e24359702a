#include "modules/tensor_pieces.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

namespace troupe {

const char* InWords(TensorKind kind) {
  switch (kind) {
    case TensorKind::kParameter:
      return "parameter";
    case TensorKind::kGradient:
      return "gradient";
    case TensorKind::kFirstMoment:
      return "first moment";
    case TensorKind::kSecondMoment:
      return "second moment";
  }
  throw std::invalid_argument("tensor kind: unknown");
}

std::string ToString(TensorKind kind) {
  std::string name = InWords(kind);
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string Describe(const TensorPiece& piece) {
  return ToString(piece.value.shape()) + " of " + ToString(piece.value.dtype()) + " at " +
         ToString(piece.offsets) + " of " + ToString(piece.global_shape);
}

bool LiesInside(const TensorPiece& piece) {
  const Shape& shape = piece.value.shape();
  const Shape& whole = piece.global_shape;
  if (shape.size() != whole.size() || piece.offsets.size() != whole.size()) return false;
  for (std::size_t d = 0; d < whole.size(); ++d) {
    if (piece.offsets[d] < 0 || piece.offsets[d] + shape[d] > whole[d]) return false;
  }
  return true;
}

bool SamePlace(const TensorPiece& a, const TensorPiece& b) {
  return a.name == b.name && a.global_shape == b.global_shape && a.offsets == b.offsets &&
         a.value.shape() == b.value.shape() && a.value.dtype() == b.value.dtype();
}

namespace {

/// Where the bytes of each piece go.
using Targets = std::map<std::string, const TensorPiece*>;

[[noreturn]] void Refuse(const std::string& who, const std::string& name, const std::string& why) {
  throw std::invalid_argument(who + ": tensor " + name + ": " + why);
}

void CheckPiece(const std::string& who, const Targets& held, const TensorPiece& given) {
  const auto found = held.find(given.name);
  if (found == held.end()) Refuse(who, given.name, "not in this stage");
  const TensorPiece& expected = *found->second;
  if (!given.value.defined() || !given.value.local()) {
    Refuse(who, given.name, "expected " + Describe(expected) + ", got no tensor in this process");
  }
  if (!SamePlace(expected, given)) {
    Refuse(who, given.name, "expected " + Describe(expected) + ", got " + Describe(given));
  }
}

}  // namespace

void OverwritePieces(const std::string& who, const std::vector<TensorPiece>& held,
                     const std::vector<TensorPiece>& given) {
  Targets targets;
  for (const TensorPiece& piece : held) targets.emplace(piece.name, &piece);
  std::map<std::string, const TensorPiece*> sources;
  for (const TensorPiece& piece : given) {
    CheckPiece(who, targets, piece);
    if (!sources.emplace(piece.name, &piece).second) Refuse(who, piece.name, "given twice");
  }
  for (const TensorPiece& piece : held) {
    if (!piece.in_folder && !sources.contains(piece.name)) {
      Refuse(who, piece.name, "missing, expected " + Describe(piece));
    }
  }
  for (const auto& [name, source] : sources) {
    // A program may be given its own pieces, and an empty one may have no memory.
    if (source->value.num_bytes() == 0) continue;
    std::memmove(targets.at(name)->value.data(), source->value.data(), source->value.num_bytes());
  }
}

}  // namespace troupe
