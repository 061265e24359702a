// Decides when the checkpoints of a job are written. Pure: the Director tells it what happens and asks
// what to do.
//
//   asynchronous   the state after a due step is saved while later rounds run, from just before the
//                  next round begins. If a checkpoint is still being written then, the next one is of
//                  the first step after that
//   synchronous    no round begins after one at whose end a checkpoint is due, until it is written
#pragma once

#include <cstdint>
#include <optional>

#include "modules/input_source.hpp"

namespace troupe {

struct CheckpointTerms {
  bool writes = false;        ///< false: none is ever due
  bool async = false;         ///< written while later rounds run
  std::int64_t every = 0;     ///< training steps between checkpoints; 0: not by steps
  std::int64_t every_ns = 0;  ///< time between them; 0: not by time
};

class CheckpointCourse {
 public:
  /// What to do before the next round begins.
  enum class Next {
    kNothing,
    kSave,  ///< save the state after latest_step()
    kLate,  ///< tell the user that its checkpoint comes later
  };

  explicit CheckpointCourse(const CheckpointTerms& terms = {}) : terms_(terms) {}

  /// The job goes on after `step`. If that state is not on a disk, a checkpoint of it is due.
  void Resume(std::int64_t step, bool is_on_disk);
  /// The first round is about to begin.
  void Start(std::int64_t now_ns) { stored_ns_ = now_ns; }
  /// The user wants one soon.
  void Ask() { is_owed_ = terms_.writes; }
  void OnBegin(const Round& round);
  void OnComplete(const Round& round, std::int64_t now_ns);
  /// Asynchronous: what to do about the round that was begun last. Also called when none is left.
  Next BeforeNext(std::int64_t now_ns);
  /// Synchronous: a checkpoint comes before any other round.
  bool holds() const { return holds_; }
  /// Whether one of steps_done() is missing when no round is left and none runs.
  bool IsMissingAtEnd(bool ended_early) const;

  /// One of `step` is being written; until OnSaved.
  void OnSaving(std::int64_t step, std::int64_t now_ns);
  /// It is complete.
  void OnSaved(std::int64_t now_ns);

  bool is_saving() const { return saving_.has_value(); }
  std::int64_t saving_step() const { return saving_->step; }
  std::int64_t saving_since_ns() const { return saving_->begun_ns; }
  /// The last training step that has begun, counted from 1.
  std::int64_t latest_step() const { return latest_step_; }
  /// Training steps that are complete.
  std::int64_t steps_done() const { return steps_done_; }

 private:
  struct Saving {
    std::int64_t step = 0;
    std::int64_t begun_ns = 0;
    bool is_late = false;  ///< the user knows that it holds up the next one
  };

  bool IsDueBySteps(std::int64_t step) const {
    return terms_.writes && terms_.every > 0 && step % terms_.every == 0;
  }
  bool IsDueByTime(std::int64_t now_ns) const {
    return terms_.writes && terms_.every_ns > 0 && now_ns - stored_ns_ >= terms_.every_ns;
  }

  CheckpointTerms terms_;
  std::optional<Saving> saving_;
  bool holds_ = false;
  bool is_owed_ = false;    ///< the user wants one, or one was due while another was being written
  bool is_decided_ = true;  ///< whether BeforeNext was asked about the latest step
  std::int64_t latest_step_ = 0;
  std::int64_t steps_done_ = 0;
  std::int64_t saved_step_ = -1;  ///< of the latest complete checkpoint
  std::int64_t stored_ns_ = 0;    ///< when that was begun, or complete if synchronous; or the job
};

}  // namespace troupe
