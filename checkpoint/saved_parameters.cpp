#include "checkpoint/saved_parameters.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "files/file_error.hpp"
#include "layout/route.hpp"

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
  SavedParameters saved;
  saved.state_ = std::make_shared<SavedState>(folder);
  const CheckpointManifest& manifest = saved.state_->manifest();
  saved.steps_ = manifest.run.step;
  const std::string kind = StoredName(TensorKind::kParameter, "");
  for (const auto& [name, tensor] : manifest.tensors) {
    if (!name.starts_with(kind)) continue;
    saved.state_->Open(name);
    saved.shapes_[name.substr(kind.size())] = tensor.shape;
  }
  return saved;
}

SavedParameters SavedParameters::OfFile(const std::string& file) {
  SavedParameters saved;
  saved.file_ = std::make_shared<const SafetensorsReader>(file);
  saved.steps_ = StepsOf(*saved.file_);
  for (const TensorEntry& entry : saved.file_->entries()) {
    saved.shapes_[entry.name] = entry.shape;
  }
  return saved;
}

SavedParameters SavedParameters::OfPath(const std::string& path) {
  const std::string newest = NewestParameters(path);
  return newest.ends_with(kWeightsFile) ? OfFile(newest) : OfCheckpoint(newest);
}

Buffer SavedParameters::Read(const std::string& name) const {
  const Shape& shape = shapes_.at(name);
  return ReadPart(name, std::vector<std::int64_t>(shape.size(), 0), shape);
}

Buffer SavedParameters::ReadPart(const std::string& name, const std::vector<std::int64_t>& offsets,
                                 const Shape& shape) const {
  if (state_) return state_->Read(StoredName(TensorKind::kParameter, name), offsets, shape);
  return file_->ReadPart(name, offsets, shape);
}

void SavedParameters::ReadInBands(const std::string& name,
                                  const std::function<void(const Buffer& rows)>& take,
                                  std::int64_t num_elements) const {
  const Shape& shape = shapes_.at(name);
  if (shape.empty()) return take(Read(name));
  const auto num_bands =
      static_cast<int>(std::min(shape[0], NumElements(shape) / num_elements + 1));
  for (int band = 0; band < num_bands; ++band) {
    const Interval rows = PartOf(shape[0], num_bands, band);
    std::vector<std::int64_t> offsets(shape.size(), 0);
    offsets[0] = rows.begin;
    Shape part = shape;
    part[0] = rows.size();
    take(ReadPart(name, offsets, part));
  }
}

}  // namespace troupe
