#include "checkpoint/saved_state.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "checkpoint/sharded.hpp"

namespace troupe {

SavedState::SavedState(std::string folder)
    : folder_(std::move(folder)), manifest_(RequireManifest(folder_)) {}

const SavedTensor* SavedState::Find(const std::string& name) const {
  const auto found = manifest_.tensors.find(name);
  return found == manifest_.tensors.end() ? nullptr : &found->second;
}

const SafetensorsReader& SavedState::FileAt(std::size_t place) {
  auto& file = files_[place];
  if (file == nullptr) {
    file = OpenShardFile(folder_, manifest_.run.step, manifest_.files.at(place));
  }
  return *file;
}

const std::vector<SavedState::Piece>& SavedState::PiecesOf(const std::string& name) {
  const auto [found, is_new] = pieces_.try_emplace(name);
  if (!is_new) return found->second;
  const SavedTensor& tensor = manifest_.tensors.at(name);
  std::int64_t elements = 0;
  for (const std::size_t place : tensor.files) {
    const SafetensorsReader& file = FileAt(place);
    for (const TensorEntry& entry : file.entries()) {
      const auto stored = ParseStoredPlace(file, entry.name);
      if (!stored || StoredName(stored->kind, stored->name) != name) continue;
      if (stored->global_shape != tensor.shape || entry.type != tensor.type) {
        throw std::runtime_error(file.path() + ": tensor " + name + ": expected a piece of " +
                                 ToString(tensor.shape) + " of " + ToString(tensor.type) +
                                 ", got one of " + ToString(stored->global_shape) + " of " +
                                 ToString(entry.type));
      }
      found->second.push_back({&file, &entry, stored->offsets});
      elements += NumElements(entry.shape);
    }
  }
  if (elements != NumElements(tensor.shape)) {
    throw std::runtime_error(folder_ + ": tensor " + name + ": " + std::to_string(elements) +
                             " elements are saved, expected " +
                             std::to_string(NumElements(tensor.shape)));
  }
  return found->second;
}

Buffer SavedState::Read(const std::string& name, const std::vector<std::int64_t>& offsets,
                        const Shape& shape) {
  const SavedTensor& tensor = manifest_.tensors.at(name);
  const Buffer part = Buffer::Allocate(shape, LoadedTypeOf(tensor.type));
  if (SizeOf(part.dtype()) != SizeOf(tensor.type)) {
    throw std::runtime_error(folder_ + ": tensor " + name + ": no state is stored as " +
                             ToString(tensor.type));
  }
  std::int64_t filled = 0;
  for (const Piece& piece : PiecesOf(name)) {
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
