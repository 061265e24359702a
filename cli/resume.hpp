// Whether a run may go on with another configuration than it had: by the role of each key that
// differs, which stands with the key (KeyRole, configs/schema.hpp).
#pragma once

#include <string>

#include "configs/config.hpp"

namespace troupe {

struct ResumeCheck {
  std::string refusal;   ///< why it may not; empty: it may
  std::string rounding;  ///< what is rounded otherwise from here on; empty: nothing
};

/// `now` goes on with the state of a checkpoint that a run of `before` has written. Layouts may not
/// differ: shards are read as they were written. Pure.
ResumeCheck CheckResume(const Config& now, const Config& before);

}  // namespace troupe
