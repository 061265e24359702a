// Runs one configuration and the unsharded reference, and checks that they agree.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/job_course.hpp"
#include "configs/config.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/expert_choices.hpp"

namespace troupe {

/// Puts something between the runtime and the programs; may be empty.
using Wrap = std::function<ProgramFactory(ProgramFactory)>;

inline constexpr std::int64_t kProofSteps = 3;

struct Proof {
  std::string failure;              ///< of the run itself, empty when it came to its end
  std::vector<std::string> faults;  ///< differences beyond the precision's limits
  ExpertChoices::Counts choices;
  double worst_gradient = 0.0;         ///< relative to its tensor's maximum
  std::vector<double> gradients;       ///< the worst of each tensor in each step
  std::map<TensorKind, double> worst;  ///< of every kind, so relative
  std::int64_t comparisons = 0;        ///< gradients, parameters, both moments: 4 in each step
  /// Empty when every step was compared and agreed, else what is wrong, at most five lines.
  std::string Objection() const;
};

/// kProofSteps steps, everything compared after each.
Proof Prove(const Config& config, const Wrap& wrap = {}, bool queues = false);

/// What makes the programs of `config` compute as on a device.
Wrap Portable(const Config& config);

/// `steps` training steps without a reference, reported to `observer`: with gradients if `inspect`.
/// Returns the failure.
std::string Train(const Config& config, std::int64_t steps, std::shared_ptr<JobObserver> observer,
                  bool inspect = false);

}  // namespace troupe
