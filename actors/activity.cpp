#include "actors/activity.hpp"

#include <cstdlib>
#include <cxxabi.h>

namespace troupe {

void ActivityTable::Add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

std::vector<ActivityTable::Entry> ActivityTable::List() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

ActivityTable::Sum ActivityTable::Total() const {
  Sum sum;
  for (const Entry& entry : List()) {
    sum.handled += entry.activity->handled.load(std::memory_order_relaxed);
    sum.busy += entry.activity->busy_since_ns.load(std::memory_order_relaxed) != 0 ? 1 : 0;
  }
  return sum;
}

std::string MessageName(const std::type_info* type) {
  if (type == nullptr) return "a message";
  int status = 0;
  char* const readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : type->name();
  std::free(readable);
  for (std::size_t at = name.find("troupe::"); at != std::string::npos; at = name.find("troupe::")) {
    name.erase(at, 8);
  }
  return name;
}

}  // namespace troupe
