// Decides when the processes of a job mirror their state in memory, and which updates wait for that.
// Pure: the Director tells it what happens and asks what to do.
//
// States are mirrored one at a time: the one that the job resumed from, then those after each step that
// `every` divides. No update of a later step begins before a state is mirrored. So a job that loses a
// process goes back at most `every` complete steps, also if it is lost while some stages have updated
// their parameters and others have not.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "modules/input_source.hpp"

namespace troupe {

class MirrorCourse {
 public:
  static constexpr std::int64_t kBeforeRounds = -1;

  /// A state to mirror.
  struct Due {
    std::int64_t step = 0;   ///< steps done, from 1
    std::int64_t round = 0;  ///< whose update makes it; kBeforeRounds: it is there
    friend bool operator==(const Due&, const Due&) = default;
  };

  /// `every` is in training steps; 0: nothing is mirrored.
  explicit MirrorCourse(std::int64_t every = 0) : every_(every) {}

  bool mirrors() const { return every_ > 0; }
  void OnBegin(const Round& round);
  /// Returns the state to mirror now, which is under way from then on; nothing if another is, or if
  /// none is due.
  std::optional<Due> Next();
  /// All processes hold it.
  void OnMirrored() { under_way_.reset(); }
  bool is_under_way() const { return under_way_.has_value(); }
  /// Whether parameters may be updated in training step `step`, counted from 1.
  bool MayUpdate(std::int64_t step) const;

 private:
  std::int64_t every_ = 0;
  bool any_begun_ = false;
  std::deque<Due> due_;  ///< begun, but not mirrored yet
  std::optional<Due> under_way_;
};

}  // namespace troupe
