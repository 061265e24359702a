#include "modules/torch/programs.hpp"

#include <stdexcept>
#include <utility>

#include "modules/parameters.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/torch_stage.hpp"

namespace troupe {
namespace {

/// The graphs that these programs can be parts of: vision transformers into language models.
void CheckModule(const Config& config, const ShardAddress& shard) {
  const ModuleKind kind = FindModule(config, shard.module).kind;
  if (kind == ModuleKind::kSynthetic) {
    throw std::invalid_argument(ToString(shard) +
                                ": expected a vit or llama module, got a synthetic one");
  }
  if (kind == ModuleKind::kVit && !IncomingEdges(config, shard.module).empty()) {
    throw std::invalid_argument(ToString(shard) + ": expected no edge into a vit module");
  }
  if (kind == ModuleKind::kLlama && !OutgoingEdges(config, shard.module).empty()) {
    throw std::invalid_argument(ToString(shard) + ": expected no edge out of a llama module");
  }
}

}  // namespace

ProgramFactory MakeTorchPrograms(const Config& config, std::shared_ptr<GroupTable> groups) {
  return [config = std::make_shared<const Config>(config),
          groups = std::move(groups)](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
    CheckModule(*config, shard);
    SetupComputeThread();
    return std::make_unique<TorchStage>(config, shard, groups->Take(shard));
  };
}

}  // namespace troupe
