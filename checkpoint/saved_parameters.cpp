#include "checkpoint/saved_parameters.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "checkpoint/assemble.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/sharded.hpp"
#include "files/file_error.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {

/// Optimizer steps that led to the final parameters of a run; 0 if the file does not say.
static std::int64_t StepsOf(const SafetensorsReader& file) {
  std::int64_t steps = 0;
  const auto found = file.metadata().find("steps");
  if (found == file.metadata().end()) return steps;
  const std::string& text = found->second;
  std::from_chars(text.data(), text.data() + text.size(), steps);
  return steps;
}

std::string NewestParameters(const std::string& path,
                             const std::function<void(const std::string& line)>& skipped) {
  if (path.ends_with(kWeightsFile) || IsThere(ManifestPath(path))) return path;
  const auto newest = NewestCheckpoint(path, skipped);
  std::string file = path + "/" + kWeightsFile;
  if (IsThere(file)) {
    const bool is_newest =
        !newest || StepsOf(SafetensorsReader(file)) >= RequireManifest(*newest).run.step;
    if (is_newest) return file;
  }
  if (newest) return *newest;
  throw std::runtime_error(
      path + ": expected a checkpoint or " + kWeightsFile +
      ", found neither; a run saves its parameters when it ends, and checkpoints as "
      "[checkpoint] says");
}

SavedParameters SavedParameters::OfCheckpoint(const std::string& folder) {
  const CheckpointManifest manifest = RequireManifest(folder);
  SavedParameters saved;
  saved.steps_ = manifest.run.step;
  for (const CheckpointFile& file : manifest.files) {
    saved.files_.push_back(OpenShardFile(folder, manifest.run.step, file));
    saved.AddShard(*saved.files_.back());
  }
  saved.CheckCovered();
  return saved;
}

SavedParameters SavedParameters::OfFile(const std::string& file) {
  SavedParameters saved;
  const auto reader = std::make_shared<const SafetensorsReader>(file);
  saved.files_.push_back(reader);
  for (const TensorEntry& entry : reader->entries()) {
    const std::vector<std::int64_t> origin(entry.shape.size(), 0);
    saved.tensors_[entry.name] = {entry.shape, {{reader.get(), entry.name, origin}}};
  }
  saved.steps_ = StepsOf(*reader);
  return saved;
}

void SavedParameters::AddShard(const SafetensorsReader& file) {
  for (const TensorEntry& entry : file.entries()) {
    const auto stored = ParseStoredPlace(file, entry);
    if (!stored || stored->kind != TensorKind::kParameter) continue;
    Tensor& tensor = tensors_[stored->name];
    if (tensor.pieces.empty()) tensor.shape = stored->global_shape;
    if (tensor.shape != stored->global_shape) {
      throw std::runtime_error(file.path() + ": tensor " + stored->name + ": expected a piece of " +
                               ToString(tensor.shape) + ", got one of " +
                               ToString(stored->global_shape));
    }
    tensor.pieces.push_back({&file, entry.name, stored->offsets});
  }
}

void SavedParameters::CheckCovered() const {
  for (const auto& [name, tensor] : tensors_) {
    std::int64_t elements = 0;
    for (const Piece& piece : tensor.pieces) {
      elements += NumElements(piece.file->Find(piece.stored_name)->shape);
    }
    if (elements == NumElements(tensor.shape)) continue;
    throw std::runtime_error(tensor.pieces.front().file->path() + ": tensor " + name + ": " +
                             std::to_string(elements) + " elements are saved, expected " +
                             std::to_string(NumElements(tensor.shape)));
  }
}

Buffer SavedParameters::ReadRows(const Tensor& tensor, const Interval& rows) {
  Buffer whole;
  std::int64_t filled = 0;
  for (const Piece& piece : tensor.pieces) {
    const TensorEntry& entry = *piece.file->Find(piece.stored_name);
    const std::int64_t first = piece.offsets[0];
    const Interval common{std::max(rows.begin, first), std::min(rows.end, first + entry.shape[0])};
    if (common.begin >= common.end) continue;
    TensorPiece part{
        .name = piece.stored_name,
        .global_shape = tensor.shape,
        .offsets = piece.offsets,
        .value = piece.file->ReadRows(piece.stored_name, common.begin - first, common.end - first)};
    part.global_shape[0] = rows.size();
    part.offsets[0] = common.begin - rows.begin;
    if (part.value.shape() == part.global_shape) return part.value;
    if (!whole.defined()) whole = Buffer::Zeros(part.global_shape, part.value.dtype());
    if (part.value.dtype() != whole.dtype()) {
      throw std::runtime_error(piece.file->path() + ": tensor " + piece.stored_name +
                               ": its pieces have different types");
    }
    filled += CopyPiece(part, whole);
  }
  if (!whole.defined() || filled != whole.num_elements()) {
    const Piece& first = tensor.pieces.front();
    throw std::runtime_error(first.file->path() + ": tensor " + first.stored_name +
                             ": its pieces overlap");
  }
  return whole;
}

void SavedParameters::ReadInBands(const std::string& name,
                                  const std::function<void(const Buffer& rows)>& take,
                                  std::int64_t num_elements) const {
  const Tensor& tensor = tensors_.at(name);
  if (tensor.shape.empty()) return take(Read(name));
  const std::int64_t num_rows = tensor.shape[0];
  const auto num_bands =
      static_cast<int>(std::min(num_rows, NumElements(tensor.shape) / num_elements + 1));
  for (int band = 0; band < num_bands; ++band) {
    take(ReadRows(tensor, PartOf(num_rows, num_bands, band)));
  }
}

Buffer SavedParameters::Read(const std::string& name) const {
  const Tensor& tensor = tensors_.at(name);
  std::vector<TensorPiece> pieces;
  for (const Piece& piece : tensor.pieces) {
    pieces.push_back({.name = name,
                      .global_shape = tensor.shape,
                      .offsets = piece.offsets,
                      .value = piece.file->Read(piece.stored_name)});
  }
  if (pieces.size() == 1 && pieces.front().value.shape() == tensor.shape) {
    return pieces.front().value;
  }
  return AssembleTensors(pieces).front().value;
}

}  // namespace troupe
