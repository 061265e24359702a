#include "transport/gpu/patience.hpp"

#include <set>

namespace troupe {
namespace {

/// The members that other members of the group report to be waiting for.
std::string Missing(const GroupNames& names) {
  std::set<std::string> missing;
  if (names.waits != nullptr) {
    const std::string ending = " of " + names.group;
    for (const ActorWaits& waiting : names.waits->List()) {
      for (const Wait& wait : waiting.waits)
        if (wait.what.ends_with(ending) && !wait.whom.empty()) missing.insert(wait.whom);
    }
  }
  std::string text;
  for (const std::string& member : missing) text += (text.empty() ? "" : ", ") + member;
  return text;
}

}  // namespace

std::string ToString(std::chrono::milliseconds time) {
  if (time.count() % 1000 != 0) return std::to_string(time.count()) + " ms";
  return std::to_string(time.count() / 1000) + " s";
}

Patience::Patience(const DeviceMember& member) : member_(member), thread_([this] { Watch(); }) {}

Patience::~Patience() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Patience::AllArrived(const std::string& activity) {
  const std::lock_guard lock(mutex_);
  activity_ = activity;
}

void Patience::Watch() {
  std::string cause;
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, member_.patience, [this] { return over_; })) return;
    cause = activity_;
  }
  if (member_.abort == nullptr) return;
  if (!cause.empty()) {
    cause = "all have arrived, and " + cause;
  } else {
    const std::string missing = Missing(member_.names);
    cause = missing.empty() ? "some have not arrived" : "no sign of " + missing;
  }
  member_.abort->Raise(member_.names.group + ": expected all its members within " +
                       ToString(member_.patience) + ", " + cause);
}

}  // namespace troupe
