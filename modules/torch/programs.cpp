#include "modules/torch/programs.hpp"

#include <stdexcept>
#include <utility>

#include "modules/parameters.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/torch_stage.hpp"
#include "modules/torch/versions.hpp"

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

ProgramFactory MakeTorchPrograms(const Config& config, std::shared_ptr<GroupTable> groups,
                                 TorchOptionsOf options) {
  AllowTf32(config.run.tf32);
  return
      [config = std::make_shared<const Config>(config), groups = std::move(groups),
       options = std::move(options)](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
        CheckModule(*config, shard);
        SetupComputeThread();
        const Numerics numerics = NumericsOf(config->run.precision, options(shard));
        return std::make_unique<TorchStage>(config, shard, numerics, groups->Take(shard));
      };
}

ProgramFactory MakeTorchPrograms(const Config& config, std::shared_ptr<GroupTable> groups,
                                 TorchOptions options) {
  return MakeTorchPrograms(config, std::move(groups),
                           [options](const ShardAddress&) { return options; });
}

}  // namespace troupe
