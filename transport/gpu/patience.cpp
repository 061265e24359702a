#include "transport/gpu/patience.hpp"

#include <set>

namespace troupe {
namespace {

/// Members that others of the group wait for, as far as these tell it.
std::string Missing(const GroupNames& names) {
  std::set<std::string> missing;
  if (names.waits != nullptr) {
    const std::string ending = " of " + names.group;
    for (const ActorWaits& waiting : names.waits->List())
      for (const Wait& wait : waiting.waits)
        if (wait.what.ends_with(ending) && !wait.whom.empty()) missing.insert(wait.whom);
  }
  std::string text;
  for (const std::string& who : missing) text += (text.empty() ? "" : ", ") + who;
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

void Patience::AllCame(const std::string& what) {
  const std::lock_guard lock(mutex_);
  all_came_ = what;
}

void Patience::Watch() {
  std::string late;
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, member_.patience, [this] { return over_; })) return;
    late = all_came_;
  }
  if (member_.abort == nullptr) return;
  if (!late.empty()) {
    late = "all have come, and " + late;
  } else {
    const std::string missing = Missing(member_.names);
    late = missing.empty() ? "some have not come" : "no sign of " + missing;
  }
  member_.abort->Raise(member_.names.group + ": expected all its members within " +
                       ToString(member_.patience) + ", " + late);
}

}  // namespace troupe
