// Finds where gradients flow: the parts of the stage graph that train, and the links that carry a
// gradient back.
#pragma once

#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Returns whether the stage has parameters that train: its own, those of an inline encoder, or
/// those of a projector on the stage.
bool StageTrains(const Config& config, const std::string& module, int pp);

/// Returns whether the stage runs backward passes: it trains, or a stage upstream of it does.
bool RunsBackward(const Config& config, const std::string& module, int pp);

/// Returns whether the hop from stage `pp` to `pp` + 1 carries a gradient back.
bool HopCarriesGradient(const Config& config, const std::string& module, int pp);

/// Returns whether the rows of `edge` carry a gradient back to their module. For an inline edge:
/// whether the encoder or its projector trains.
bool EdgeCarriesGradient(const Config& config, const EdgeConfig& edge);

}  // namespace troupe
