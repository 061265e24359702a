#include "checkpoint/weights_run.hpp"

#include <stdexcept>
#include <vector>

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

const SavedParameters* WeightsRuns::SourceOf(const std::string& name) {
  const auto run = runs_.find(PartNameOf(name));
  if (run == runs_.end()) return nullptr;
  const auto found = sources_.find(run->second);
  if (found != sources_.end()) return &found->second;
  return &sources_.emplace(run->second, SavedParameters::OfPath(run->second)).first->second;
}

void WeightsRuns::Require(const std::string& name, const Shape& shape) {
  const SavedParameters* const source = SourceOf(name);
  if (source == nullptr) return;
  const bool has = source->Has(name);
  if (has && source->ShapeOf(name) == shape) return;
  throw std::runtime_error(runs_.at(PartNameOf(name)) + ": expected tensor " + name + " of " +
                           ToString(shape) + ", found " +
                           (has ? "one of " + ToString(source->ShapeOf(name)) : "none"));
}

void WeightsRuns::Read(const TensorPiece& piece) {
  const SavedParameters* const source = SourceOf(piece.name);
  if (source == nullptr) return;
  Require(piece.name, piece.global_shape);
  const Buffer value = source->ReadPart(piece.name, piece.offsets, piece.value.shape());
  ConvertFloats(StoredTypeOf(value.dtype()), value.data(),
                static_cast<std::size_t>(value.num_elements()), StoredTypeOf(piece.value.dtype()),
                piece.value.data());
}

}  // namespace troupe
