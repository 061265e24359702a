// Whether a run may resume with another configuration than it had: by the role of each key that
// differs, which stands with the key (KeyRole, configs/schema.hpp).
#pragma once

#include <string>
#include <vector>

#include "configs/loader.hpp"

namespace troupe {

struct ResumeCheck {
  std::string refusal;             ///< why it may not; empty: it may
  std::vector<std::string> tuned;  ///< "optimizer.epsilon is 1e-06, that run has 1e-08", by --set
  std::string rounding;            ///< what is rounded otherwise from here on; empty: nothing
};

/// `now` resumes with the state of a checkpoint that a run of `before` has written. Layouts may not
/// differ: shards are read as they were written. What may be tuned may differ where --set says so:
/// a file that differs is more likely the wrong file. Pure.
ResumeCheck CheckResume(const LoadedConfig& now, const Config& before);

}  // namespace troupe
