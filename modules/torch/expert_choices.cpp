#include "modules/torch/expert_choices.hpp"

#include <algorithm>
#include <atomic>

namespace troupe {
namespace {

std::atomic<ExpertChoices*> active = nullptr;

bool AreSame(std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

}  // namespace

void ExpertChoices::Record(const RoutedToken& token, const std::vector<std::int64_t>& experts) {
  const std::lock_guard lock(mutex_);
  experts_[token] = experts;
}

std::vector<std::int64_t> ExpertChoices::Follow(const RoutedToken& token,
                                                std::vector<std::int64_t> own) {
  const std::lock_guard lock(mutex_);
  ++counts_.asked;
  const auto found = experts_.find(token);
  if (found == experts_.end()) return own;
  ++counts_.followed;
  if (!AreSame(found->second, own)) ++counts_.differing;
  return found->second;
}

void ExpertChoices::Forget(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  experts_.erase(experts_.begin(), experts_.lower_bound(RoutedToken{.step = step + 1}));
}

ExpertChoices::Counts ExpertChoices::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

RecordExpertChoices::RecordExpertChoices(ExpertChoices& choices) { active = &choices; }
RecordExpertChoices::~RecordExpertChoices() { active = nullptr; }
ExpertChoices* RecordExpertChoices::Active() { return active; }

}  // namespace troupe
