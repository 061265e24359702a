// Decides whether a run may resume with another configuration, by the role of each key that differs
// (KeyRole, configs/schema.hpp).
#pragma once

#include <string>
#include <vector>

#include "configs/loader.hpp"

namespace troupe {

struct ResumeCheck {
  std::string refusal;             ///< why it may not resume; empty: it may
  std::vector<std::string> tuned;  ///< "optimizer.epsilon is 1e-06, that run has 1e-08", by --set
  std::string rounding;            ///< keys that change rounding; empty: none
};

/// Checks whether `now` can resume from a checkpoint that a run of `before` has written. Layouts
/// must be equal: shards are read as they were written. Tuning keys may differ only by --set: a
/// file that differs is more likely the wrong file. Pure.
ResumeCheck CheckResume(const LoadedConfig& now, const Config& before);

}  // namespace troupe
