#include "actors/mirror_course.hpp"

#include <utility>

namespace troupe {

void MirrorCourse::OnBegin(const Round& round) {
  if (!round.train || every_ == 0) return;
  if (!std::exchange(any_begun_, true) && round.step > 0) {
    due_.push_back({.step = round.step, .round = kBeforeRounds});
  }
  const std::int64_t step = round.step + 1;
  if (step % every_ == 0) due_.push_back({.step = step, .round = round.number});
}

std::optional<MirrorCourse::Due> MirrorCourse::Next() {
  if (under_way_ || due_.empty()) return std::nullopt;
  under_way_ = due_.front();
  due_.pop_front();
  return under_way_;
}

bool MirrorCourse::MayUpdate(std::int64_t step) const {
  return (!under_way_ || step <= under_way_->step) && (due_.empty() || step <= due_.front().step);
}

}  // namespace troupe
