// The layers of one module with one division of each layer: what they take and hold on a rank. The
// search cuts them into stages in many ways without looking at them again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/device.hpp"
#include "plan/cost/unit_work.hpp"
#include "plan/optimizer_settings.hpp"
#include "plan/search/alike_layers.hpp"

namespace troupe {

/// Parameters of a rank, in elements.
struct HeldElements {
  double trained = 0.0;
  double experts = 0.0;  ///< those of `trained` that are of experts
  double frozen = 0.0;
  void Add(const HeldElements& other, double times) {
    trained += times * other.trained;
    experts += times * other.experts;
    frozen += times * other.frozen;
  }
};

/// Bytes of parameters, gradients and moments for each element, as plan/memory.hpp counts them but for
/// padding and parameters that are never rounded.
struct StateWeights {
  double trained = 0.0;
  double experts = 0.0;  ///< of those of experts, in place of `trained`
  double frozen = 0.0;
  double BytesOf(const HeldElements& held) const {
    return (held.trained - held.experts) * trained + held.experts * experts + held.frozen * frozen;
  }
};
StateWeights WeightsOf(const Config& config, const StateShardings& shardings);

/// A part of a module on each of its ranks, for a unit of work.
struct PartSums {
  double pass_s = 0.0;      ///< forward and backward
  double weights_s = 0.0;   ///< the part of the backward for gradients of weights
  double backward_s = 0.0;  ///< all of it
  double kept_bytes = 0.0;  ///< activations
  double owed_bytes = 0.0;  ///< the same while only the work for weights is deferred
  HeldElements held;
  void Add(const PartSums& other, double times = 1.0) {
    pass_s += times * other.pass_s;
    weights_s += times * other.weights_s;
    backward_s += times * other.backward_s;
    kept_bytes += times * other.kept_bytes;
    owed_bytes += times * other.owed_bytes;
    held.Add(other.held, times);
  }
};

/// Neighbouring stages that take and hold the same.
struct StageSums {
  int stages = 1;
  std::int64_t layers = 0;  ///< of each
  PartSums each;
  double away_bytes = 0.0;          ///< of each.kept_bytes: of layers that "auto" offloads
  double largest_away_bytes = 0.0;  ///< likewise, of one layer
};

class ModuleTable {
 public:
  /// `config` states how the module's layers are divided, with pp = 1; its data parallelism does not
  /// matter. A unit has `samples` on each replica. Inline encoders and projectors that run with the
  /// module count with its first or last stage. `like`: a table of the same parameters, or null.
  ModuleTable(const Config& config, const std::string& module, std::int64_t samples,
              const DeviceModel& device, const AverageWork& average, const AlikeLayers& layers,
              const ModuleTable* like = nullptr);

  /// Returns the stages that have these layers.
  std::vector<StageSums> Stages(const std::vector<StageRun>& runs) const;
  /// Returns what the largest of `stages` stages takes at least.
  double LeastOfLargest(int stages) const;
  /// Returns whether copying what a layer keeps to host memory takes at most as long as its forward.
  bool hides_copies() const { return hides_copies_; }

 private:
  void AddCosts(const Config& config, const ModuleConfig& own, std::int64_t samples,
                const DeviceModel& device, const AverageWork& average, const AlikeLayers& layers);
  void AddParameters(const Config& config, const ModuleConfig& own, const AlikeLayers& layers);
  void CopyParameters(const ModuleTable& like);

  std::int64_t num_layers_ = 0;
  PartSums first_;               ///< what runs before the layers
  std::vector<PartSums> kinds_;  ///< a layer of each kind
  PartSums last_;                ///< what runs after them
  PartSums copy_;                ///< a second embedding, if the last stage is not the first
  double pass_s_ = 0.0;
  bool ends_in_loss_ = false;
  bool hides_copies_ = false;
};

}  // namespace troupe
