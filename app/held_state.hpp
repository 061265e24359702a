// Checkpoints that the processes of a job hold in memory, when they meet after a loss.
#pragma once

#include <optional>
#include <vector>

#include "cluster/join.hpp"
#include "modules/held_files.hpp"

namespace troupe {

/// The states that this process reports when the job meets. Throws std::runtime_error for a broken manifest.
std::vector<HeldState> HeldBy(const HeldFiles& held);

/// Returns the newest state that `members` hold whole: one of them has the manifest, and each file that
/// it lists is held by one of them. Nothing if there is none.
std::optional<HeldState> NewestHeld(const std::vector<Hello>& members);

}  // namespace troupe
