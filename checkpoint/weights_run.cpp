#include "checkpoint/weights_run.hpp"

#include <stdexcept>
#include <vector>

#include "checkpoint/saved_parameters.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
WeightsRuns::WeightsRuns(const Config& config) {
  for (const ModuleConfig& module : config.modules) {
    if (module.weights) runs_[module.name] = WeightsRun(*module.weights);
  }
  for (const EdgeConfig& edge : config.edges) {
    if (edge.through && edge.through->weights) {
      runs_[ProjectorName(edge)] = WeightsRun(*edge.through->weights);
    }
  }
  std::erase_if(runs_, [](const auto& run) { return run.second.empty(); });
}

WeightsRuns::Source WeightsRuns::Open(const std::string& path) {
  const std::string parameters = NewestParameters(path);
  Source source;
  if (parameters.ends_with(kWeightsFile)) {
    source.whole = std::make_unique<const SafetensorsReader>(parameters);
  } else {
    source.state = std::make_unique<SavedState>(parameters);
  }
  return source;
}

WeightsRuns::Source* WeightsRuns::SourceOf(const std::string& name) {
  const auto run = runs_.find(PartNameOf(name));
  if (run == runs_.end()) return nullptr;
  const auto found = sources_.find(run->second);
  if (found != sources_.end()) return &found->second;
  return &sources_.emplace(run->second, Open(run->second)).first->second;
}

void WeightsRuns::Require(const std::string& name, const Shape& shape) {
  const Source* const source = SourceOf(name);
  if (source == nullptr) return;
  const Shape* there = nullptr;
  if (source->whole) {
    const TensorEntry* const entry = source->whole->Find(name);
    there = entry == nullptr ? nullptr : &entry->shape;
  } else {
    const SavedTensor* const tensor = source->state->Find(StoredName(TensorKind::kParameter, name));
    there = tensor == nullptr ? nullptr : &tensor->shape;
  }
  if (there != nullptr && *there == shape) return;
  throw std::runtime_error(runs_.at(PartNameOf(name)) + ": expected tensor " + name + " of " +
                           ToString(shape) + ", found " +
                           (there == nullptr ? "none" : "one of " + ToString(*there)));
}

void WeightsRuns::Read(const TensorPiece& piece) {
  const Source* const source = SourceOf(piece.name);
  if (source == nullptr) return;
  Require(piece.name, piece.global_shape);
  const Shape& shape = piece.value.shape();
  Buffer value;
  if (source->whole) {
    const TensorEntry& entry = *source->whole->Find(piece.name);
    value = Buffer::Allocate(shape, LoadedTypeOf(entry.type));
    if (SizeOf(value.dtype()) != SizeOf(entry.type)) {
      throw std::runtime_error(source->whole->path() + ": no run saves parameters as " +
                               ToString(entry.type));
    }
    const std::vector<std::int64_t> origin(shape.size(), 0);
    source->whole->ReadPart(entry, {piece.offsets, shape, origin, shape, value.data()});
  } else {
    value =
        source->state->Read(StoredName(TensorKind::kParameter, piece.name), piece.offsets, shape);
  }
  ConvertFloats(StoredTypeOf(value.dtype()), value.data(),
                static_cast<std::size_t>(value.num_elements()), StoredTypeOf(piece.value.dtype()),
                piece.value.data());
}

}  // namespace troupe
