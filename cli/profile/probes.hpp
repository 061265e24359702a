// The small jobs whose passes a profile measures.
#pragma once

#include <string>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// What the passes of a probe are for.
enum class ProbeUse {
  kRates,   ///< the rates of operations
  kGroups,  ///< the same with tp 2, and what ranks do for collectives
  kLinks,   ///< how long two ranks wait for each other
  kFlow     ///< what passes and steps take besides: everything on one rank, several microbatches
};

struct Probe {
  Config config;
  ProbeUse use = ProbeUse::kRates;
  std::string what;  ///< "2 samples in 3 stages"
};

/// Returns `config` with modules of few layers, in one stage each, and random weights: what a layer takes does not
/// depend on how many there are, and a large model would not fit.
Config WithFewLayers(Config config);

/// Returns the probes of a configuration WithFewLayers, quick ones first. In all but the last ones no two modules share a rank.
/// They have 1, 2, 4, ... samples, up to twice those of a microbatch; then tp 2, and three stages. The last ones
/// run everything on one rank, and on two with tp 2. If a probe has more ranks than there are GPUs, its ranks
/// share one, or it is left out if it has tp 2; `gpus` 0: ranks are threads. Throws LayoutError for modules that state their times.
std::vector<Probe> ProbesOf(const Config& config, int gpus);

}  // namespace troupe
