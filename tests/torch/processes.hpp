// A job in which each rank is a separate process. Counts the bytes that each receives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "modules/groups.hpp"
#include "tests/torch/job.hpp"
#include "tests/transport/memory_plane.hpp"

namespace troupe {

/// Must outlive the jobs of its groups.
class Processes {
 public:
  explicit Processes(const Config& config)
      : config_(config),
        plan_(ProcessPlan::Local(config.cluster, config.cluster.ranks)),
        network_(config.cluster.ranks, abort_, 1) {}

  testing::MemoryNetwork& network() { return network_; }
  std::function<std::shared_ptr<GroupTable>(int rank)> groups() {
    return [this](int rank) {
      return std::make_shared<GroupTable>(config_, plan_, network_.plane(rank), abort_);
    };
  }

 private:
  Config config_;
  ProcessPlan plan_;
  std::shared_ptr<AbortSignal> abort_ = std::make_shared<AbortSignal>();
  testing::MemoryNetwork network_;
};

/// Bytes that each rank receives in the passes of one microbatch, without the sums of gradients.
std::vector<double> BytesOfMicrobatch(const Config& config, const Inputs& inputs);
/// `config` with that many layers in its language model.
Config WithLayers(Config config, std::int64_t layers);

}  // namespace troupe
