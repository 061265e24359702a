// The devices here, measured.
#pragma once

#include "cli/profile/fitted_device.hpp"
#include "configs/config.hpp"

namespace troupe {

/// Times small jobs of the modules of `config` in this process, for so many seconds, and fits a device to
/// them. Reports progress on stderr. Throws LayoutError for modules that state their times, and
/// std::runtime_error with the cause if a job fails.
FittedDevice ProfiledHere(const Config& config, int seconds);

}  // namespace troupe
