// Compares the state that a configuration needs with that of a checkpoint: modules that are new,
// left out, frozen or trained from here on.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "configs/config.hpp"

namespace troupe {

/// What becomes of the state of one module or projector.
struct PartChange {
  std::string part;
  std::string line;    ///< "left out: 12 tensors (vision.norm.weight, ...)"
  bool fresh = false;  ///< it lacks tensors that it needs
};

/// The differences, by part. All of them change what is trained, so the user must ask for them by
/// name. Throws std::runtime_error, one line, for a tensor of another shape, and for trained values
/// that would be replaced by those of a folder. Pure.
std::vector<PartChange> CompareState(const Config& now, const CheckpointManifest& saved);

}  // namespace troupe
