#include "transport/group_waits.hpp"

#include <utility>

namespace troupe {

GroupWaits::GroupWaits(std::vector<std::string> process_names)
    : process_names_(std::move(process_names)) {}

GroupWaits::Token GroupWaits::Begin(std::string text) {
  const std::lock_guard lock(mutex_);
  waits_.emplace(++last_, std::move(text));
  return last_;
}

void GroupWaits::End(Token token) {
  const std::lock_guard lock(mutex_);
  waits_.erase(token);
}

std::vector<std::string> GroupWaits::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const auto& [token, text] : waits_) texts.push_back(text);
  return texts;
}

std::string GroupWaits::NameOf(ProcessId process) const {
  const auto index = static_cast<std::size_t>(process);
  return index < process_names_.size() ? process_names_[index]
                                       : "process " + std::to_string(process);
}

}  // namespace troupe
