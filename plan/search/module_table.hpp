// The layers of one module with one division of each layer: what they take and hold on a rank. The
// search cuts them into stages in many ways without looking at them again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/breakdown.hpp"
#include "plan/cost/device.hpp"
#include "plan/optimizer_settings.hpp"

namespace troupe {

/// Parameters of a rank, in elements.
struct HeldElements {
  double trained = 0.0;
  double experts = 0.0;  ///< those of `trained` that are of experts
  double frozen = 0.0;
  HeldElements& operator+=(const HeldElements& other) {
    trained += other.trained;
    experts += other.experts;
    frozen += other.frozen;
    return *this;
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

/// A part of a module on each of its ranks.
struct TablePart {
  PassCost cost;  ///< of a unit
  HeldElements held;
  double kept = 0.0;  ///< elements of activations of a unit
  TablePart& operator+=(const TablePart& other) {
    cost += other.cost;
    held += other.held;
    kept += other.kept;
    return *this;
  }
};

class ModuleTable {
 public:
  /// `config` states how the module's layers are divided, with pp = 1; its data parallelism does not
  /// matter. A unit has `samples` on each replica. Inline encoders and projectors that run with the
  /// module count with its first or last stage. `like`: a table of the same parameters, or null.
  ModuleTable(const Config& config, const std::string& module, std::int64_t samples,
              const DeviceModel& device, const ModuleTable* like = nullptr);

  /// Returns the stages that have so many layers each.
  std::vector<TablePart> Stages(const std::vector<std::int64_t>& layers) const;
  std::int64_t num_layers() const { return static_cast<std::int64_t>(layers_.size()); }

 private:
  void AddCosts(const Config& config, const ModuleConfig& own, std::int64_t samples,
                const DeviceModel& device);
  void AddParameters(const Config& config, const ModuleConfig& own);
  void CopyParameters(const ModuleTable& like);

  TablePart first_;  ///< what runs before the layers
  std::vector<TablePart> layers_;
  TablePart last_;  ///< and behind them
  TablePart copy_;  ///< a second embedding, if the last stage is not the first
  double pass_s_ = 0.0;
};

}  // namespace troupe
