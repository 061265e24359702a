#include "actors/checkpoint_course.hpp"

#include <utility>

namespace troupe {

void CheckpointCourse::Resume(std::int64_t step, bool is_on_disk) {
  latest_step_ = steps_done_ = step;
  if (is_on_disk) {
    saved_step_ = step;
    return;
  }
  is_owed_ = terms_.writes;
  is_decided_ = !terms_.writes;
  holds_ = terms_.writes && !terms_.async;
}

void CheckpointCourse::OnBegin(const Round& round) {
  if (!round.train) return;
  latest_step_ = round.step + 1;
  is_decided_ = false;
  if (!terms_.async && IsDueBySteps(latest_step_)) holds_ = true;
}

void CheckpointCourse::OnComplete(const Round& round, std::int64_t now_ns) {
  if (!round.train) return;
  steps_done_ = round.step + 1;
  if (!terms_.async && (is_owed_ || IsDueByTime(now_ns))) holds_ = true;
}

CheckpointCourse::Next CheckpointCourse::BeforeNext(std::int64_t now_ns) {
  if (!terms_.async || std::exchange(is_decided_, true)) return Next::kNothing;
  if (!is_owed_ && !IsDueBySteps(latest_step_) && !IsDueByTime(now_ns)) return Next::kNothing;
  if (!saving_) return Next::kSave;
  is_owed_ = true;
  return std::exchange(saving_->is_late, true) ? Next::kNothing : Next::kLate;
}

bool CheckpointCourse::IsMissingAtEnd(bool ended_early) const {
  return terms_.writes && (ended_early || is_owed_) && steps_done_ > 0 &&
         saved_step_ != steps_done_;
}

void CheckpointCourse::OnSaving(std::int64_t step, std::int64_t now_ns) {
  saving_ = {.step = step, .begun_ns = now_ns};
  holds_ = is_owed_ = false;
  stored_ns_ = now_ns;
}

void CheckpointCourse::OnSaved(std::int64_t now_ns) {
  saved_step_ = saving_->step;
  saving_.reset();
  if (!terms_.async) stored_ns_ = now_ns;
}

}  // namespace troupe
