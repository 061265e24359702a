#include "modules/tensor_pieces.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

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

std::string PartNameOf(const std::string& name) { return name.substr(0, name.find('.')); }

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

std::string FirstDifference(const StoredShard& one, const StoredShard& other) {
  const std::size_t most = std::max(one.tensors.size(), other.tensors.size());
  for (std::size_t i = 0; i < most; ++i) {
    if (i < one.tensors.size() && i < other.tensors.size() && one.tensors[i] == other.tensors[i]) {
      continue;
    }
    const StoredTensor& tensor = i < one.tensors.size() ? one.tensors[i] : other.tensors[i];
    return std::string(InWords(tensor.kind)) + " " + tensor.name;
  }
  return {};
}

bool SamePlace(const TensorPiece& a, const TensorPiece& b) {
  return a.name == b.name && a.global_shape == b.global_shape && a.offsets == b.offsets &&
         a.value.shape() == b.value.shape() && a.value.dtype() == b.value.dtype();
}

namespace {

/// The pieces that a program holds, by name and place.
using Targets = std::map<std::pair<std::string, std::vector<std::int64_t>>, const TensorPiece*>;

[[noreturn]] void Refuse(const std::string& who, const std::string& name, const std::string& why) {
  throw std::invalid_argument(who + ": tensor " + name + ": " + why);
}

/// Returns the target of a piece.
const TensorPiece& CheckPiece(const std::string& who, const Targets& held,
                              const TensorPiece& given) {
  auto found = held.find({given.name, given.offsets});
  if (found == held.end()) found = held.lower_bound({given.name, {}});
  if (found == held.end() || found->first.first != given.name) {
    Refuse(who, given.name, "not in this stage");
  }
  const TensorPiece& expected = *found->second;
  if (!given.value.defined() || !given.value.local()) {
    Refuse(who, given.name, "expected " + Describe(expected) + ", got no tensor in this process");
  }
  if (!SamePlace(expected, given)) {
    Refuse(who, given.name, "expected " + Describe(expected) + ", got " + Describe(given));
  }
  return expected;
}

}  // namespace

void OverwritePieces(const std::string& who, const std::vector<TensorPiece>& held,
                     const std::vector<TensorPiece>& given) {
  Targets targets;
  for (const TensorPiece& piece : held)
    targets.emplace(std::pair(piece.name, piece.offsets), &piece);
  std::map<const TensorPiece*, const TensorPiece*> sources;
  for (const TensorPiece& piece : given) {
    if (!sources.emplace(&CheckPiece(who, targets, piece), &piece).second) {
      Refuse(who, piece.name, "given twice");
    }
  }
  for (const TensorPiece& piece : held) {
    if (!piece.in_folder && !sources.contains(&piece)) {
      Refuse(who, piece.name, "missing, expected " + Describe(piece));
    }
  }
  for (const auto& [target, source] : sources) {
    // A program may be given its own pieces, and an empty one may have no memory.
    if (source->value.num_bytes() == 0) continue;
    std::memmove(target->value.data(), source->value.data(), source->value.num_bytes());
  }
}

}  // namespace troupe
