#include "actors/activity.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace troupe {

void ActivityTable::Add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

void ActivityTable::Remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.name == name && entry.activity->ended.load(std::memory_order_relaxed);
  });
  if (found != entries_.end()) entries_.erase(found);
}

std::vector<ActivityTable::Entry> ActivityTable::List() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

PlantedFault PlantedFault::Parse(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, '@');) parts.push_back(part);
  static const std::map<std::string, Kind> kinds = {
      {"sleep", Kind::kSleep}, {"slow", Kind::kSlow},     {"lose", Kind::kLose},
      {"throw", Kind::kThrow}, {"freeze", Kind::kFreeze}, {"kill", Kind::kKill}};
  const auto kind = kinds.find(parts.empty() ? "" : parts[0]);
  if (parts.size() < 4 || parts.size() > 5 || kind == kinds.end()) {
    throw std::invalid_argument("\"" + text +
                                "\": expected sleep|slow|lose|throw|freeze|kill@ACTOR@MESSAGE@COUNT"
                                "[@GENERATION]");
  }
  return {kind->second, parts[1], parts[2], std::stoull(parts[3]),
          parts.size() > 4 ? std::stoll(parts[4]) : 0};
}

void Active::StayIfFrozen() const {
  if (frozen_) std::this_thread::sleep_for(std::chrono::hours(1));
}

std::optional<PlantedFault::Kind> Active::FaultAt(const std::type_info* message) {
  if (!fault_ || MessageName(message) != fault_->message || --fault_->count > 0) {
    return std::nullopt;
  }
  const PlantedFault::Kind kind = fault_->kind;
  fault_.reset();
  return kind;
}

void Active::Strike(PlantedFault::Kind kind) {
  frozen_ = kind == PlantedFault::Kind::kFreeze;
  if (kind == PlantedFault::Kind::kSleep) std::this_thread::sleep_for(std::chrono::hours(1));
  if (kind == PlantedFault::Kind::kSlow)
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  if (kind == PlantedFault::Kind::kKill) raise(SIGKILL);
  if (kind == PlantedFault::Kind::kThrow) throw std::runtime_error("a planted fault");
}

}  // namespace troupe
