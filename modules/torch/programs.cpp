#include "modules/torch/programs.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "modules/torch/compute.hpp"
#include "modules/torch/numerics.hpp"
#include "modules/torch/torch_kind.hpp"
#include "modules/torch/torch_stage.hpp"
#include "modules/torch/versions.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

void CheckModule(const Config& config, const ShardAddress& shard) {
  TorchKindOf(FindModule(config, shard.module));
  for (const EdgeConfig& edge : config.edges) {
    if (edge.from != shard.module && edge.to != shard.module) continue;
    const std::string why =
        FindModule(config, edge.to).model->WhyNotFrom(*FindModule(config, edge.from).model);
    if (why.empty()) continue;
    throw std::invalid_argument(ToString(shard) + ": edge " + edge.from + " -> " + edge.to + ": " +
                                edge.to + " " + why);
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
