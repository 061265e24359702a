#include "transport/group_waits.hpp"

#include <utility>

namespace troupe {

GroupWaits::GroupWaits(std::vector<std::string> process_names)
    : process_names_(std::move(process_names)) {}

void GroupWaits::Add(const Source* source) {
  const std::lock_guard lock(mutex_);
  sources_.insert(source);
}

void GroupWaits::Remove(const Source* source) {
  const std::lock_guard lock(mutex_);
  sources_.erase(source);
}

GroupWaits::Token GroupWaits::Begin(ActorWaits wait) {
  const std::lock_guard lock(mutex_);
  waits_.emplace(++last_, std::move(wait));
  return last_;
}

void GroupWaits::End(Token token) {
  const std::lock_guard lock(mutex_);
  waits_.erase(token);
}

std::vector<ActorWaits> GroupWaits::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<ActorWaits> all;
  for (const auto& [token, wait] : waits_) all.push_back(wait);
  for (const Source* const source : sources_) source->AddWaits(all);
  return all;
}

std::string GroupWaits::NameOf(ProcessId process) const {
  const auto index = static_cast<std::size_t>(process);
  return index < process_names_.size() ? process_names_[index]
                                       : "process " + std::to_string(process);
}

std::string GroupNames::MemberName(int member) const {
  const auto index = static_cast<std::size_t>(member);
  return index < members.size() ? members[index] : "member " + std::to_string(member);
}

}  // namespace troupe
