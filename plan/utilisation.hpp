// The share of their peak that devices spend on the operations of the model (MFU).
//
//   MFU = operations of the step / (seconds of the step * peak of a device * devices)
//
// The operations are those of plan/model_flops.hpp for the tokens of the samples without padding:
// recomputed ones do not count (PaLM, arXiv:2204.02311, appendix B).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/work.hpp"

namespace troupe {

struct PartUtilisation {
  std::string name;  ///< of a module, or of an edge's projector
  double mfu = 0.0;  ///< share of the peak of the devices of its ranks, [0, 1]
};

struct Utilisation {
  double mfu = 0.0;  ///< of the devices of the job
  std::vector<PartUtilisation> parts;
};

/// Operations of a step by module, and by projector of an edge.
using FlopsByPart = std::map<std::string, double>;
/// The peak of the devices that a module runs on, in FLOP/s.
using PeakOf = std::function<double(const ModuleConfig& module)>;

/// Returns the operations of a step of these samples.
FlopsByPart FlopsOf(const Config& config, const std::vector<StepShape>& samples);

/// Returns the utilisation of a step that took `seconds`, more than 0. Every rank belongs to a module that does not run
/// inside another.
Utilisation UtilisationOf(const Config& config, const FlopsByPart& flops, double seconds,
                          const PeakOf& peak_of);

/// Returns the utilisation of a step that took `seconds`; nothing unless cluster.peak_tflops is
/// stated. `samples`: the shape of each sample. A rank that shares a GPU counts as its share of it.
Utilisation UtilisationOf(const Config& config, const std::vector<StepShape>& samples,
                          double seconds);

/// Returns the formula and the peak for people: "MFU = ... with a peak of 312 TFLOP/s per GPU, 8
/// GPUs"; why there is none without a peak.
std::string UtilisationText(const Config& config);

}  // namespace troupe
