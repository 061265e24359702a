#include "checkpoint/saved_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "checkpoint/sharded.hpp"

namespace troupe {

namespace {

/// The manifest with the sum `sum`, here or elsewhere.
CheckpointManifest FindManifest(const std::string& folder, const std::string& sum,
                                const OpenElsewhere& elsewhere) {
  if (sum.empty() || ManifestSum(folder) == sum) return RequireManifest(folder);
  const std::string path = ManifestPath(folder);
  const auto bytes = elsewhere ? elsewhere(path) : nullptr;
  if (bytes == nullptr || bytes->size() > kMaxManifestBytes) {
    throw std::runtime_error(path + ": not the one that the first process has");
  }
  std::string text(bytes->size(), '\0');
  bytes->Read(0, text.data(), text.size());
  try {
    return ParseManifest(text);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ", from another process: " + error.what());
  }
}

}  // namespace

SavedState::SavedState(std::string folder) : SavedState(std::move(folder), "", {}) {}

SavedState::SavedState(std::string folder, const std::string& manifest_sum, OpenElsewhere elsewhere)
    : folder_(std::move(folder)),
      elsewhere_(std::move(elsewhere)),
      manifest_(FindManifest(folder_, manifest_sum, elsewhere_)) {}

const SavedTensor* SavedState::Find(const std::string& name) const {
  const auto found = manifest_.tensors.find(name);
  return found == manifest_.tensors.end() ? nullptr : &found->second;
}

void SavedState::OpenFile(std::size_t place) {
  auto& file = files_[place];
  if (file != nullptr) return;
  file = OpenShardFile(folder_, manifest_.run.step, manifest_.files.at(place), elsewhere_);
  for (const TensorEntry& entry : file->entries()) {
    const auto stored = ParseStoredPlace(*file, entry);
    if (!stored) continue;
    const std::string name = StoredName(stored->kind, stored->name);
    const SavedTensor* const tensor = Find(name);
    if (tensor == nullptr) continue;
    if (stored->global_shape != tensor->shape || entry.type != tensor->type) {
      throw std::runtime_error(file->path() + ": tensor " + name + ": expected a piece of " +
                               ToString(tensor->shape) + " of " + ToString(tensor->type) +
                               ", got one of " + ToString(stored->global_shape) + " of " +
                               ToString(entry.type));
    }
    pieces_[name].push_back({file.get(), &entry, stored->offsets});
  }
}

const std::vector<SavedState::Piece>& SavedState::PiecesOf(const std::string& name) {
  const SavedTensor& tensor = manifest_.tensors.at(name);
  for (const std::size_t place : tensor.files) OpenFile(place);
  const std::vector<Piece>& pieces = pieces_[name];
  if (!checked_.insert(name).second) return pieces;
  std::int64_t elements = 0;
  for (const Piece& piece : pieces) elements += NumElements(piece.entry->shape);
  if (elements == NumElements(tensor.shape)) return pieces;
  throw std::runtime_error(folder_ + ": tensor " + name + ": " + std::to_string(elements) +
                           " elements are saved, expected " +
                           std::to_string(NumElements(tensor.shape)));
}

Buffer SavedState::Read(const std::string& name, const std::vector<std::int64_t>& offsets,
                        const Shape& shape) {
  const SavedTensor& tensor = manifest_.tensors.at(name);
  const std::vector<Piece>& pieces = PiecesOf(name);
  const Buffer part = Buffer::Allocate(shape, LoadedTypeOf(tensor.type));
  if (SizeOf(part.dtype()) != SizeOf(tensor.type)) {
    throw std::runtime_error(folder_ + ": tensor " + name + ": no state is stored as " +
                             ToString(tensor.type));
  }
  std::int64_t filled = 0;
  for (const Piece& piece : pieces) {
    PartToRead common{.offsets = {}, .shape = {}, .to = {}, .whole = shape, .data = part.data()};
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t first = piece.offsets[d];
      const std::int64_t begin = std::max(offsets[d], first);
      const std::int64_t end = std::min(offsets[d] + shape[d], first + piece.entry->shape[d]);
      common.offsets.push_back(begin - first);
      common.to.push_back(begin - offsets[d]);
      common.shape.push_back(std::max<std::int64_t>(end - begin, 0));
    }
    piece.file->ReadPart(*piece.entry, common);
    filled += NumElements(common.shape);
  }
  if (filled == part.num_elements()) return part;
  throw std::runtime_error(folder_ + ": tensor " + name + ": its pieces overlap");
}

std::uint64_t SavedState::bytes_read() const {
  std::uint64_t bytes = 0;
  for (const auto& [place, file] : files_) bytes += file->bytes_read();
  return bytes;
}

}  // namespace troupe
