// Where gradients flow: which parts of the stage graph train, and which links carry a gradient
// back.
#pragma once

#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Whether the stage has parameters that train: its own, an inline encoder's, or a projector's that
/// runs on it.
bool StageTrains(const Config& config, const std::string& module, int pp);

/// Whether the stage runs backward passes: it trains, or anything upstream of it does.
bool RunsBackward(const Config& config, const std::string& module, int pp);

/// Whether the hop from stage `pp` to `pp` + 1 carries a gradient back.
bool HopCarriesGradient(const Config& config, const std::string& module, int pp);

/// Whether the rows of `edge` carry a gradient back to the module they come from. For an inline
/// edge: whether the encoder or its projector trains.
bool EdgeCarriesGradient(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
