#include "actors/actor_base.hpp"

#include <algorithm>

#include <caf/message.hpp>

namespace troupe {

Failure FailureOf(const caf::error& error) {
  const caf::message& context = error.context();
  if (context.size() == 1 && context.match_element<Failure>(0)) {
    return context.get_as<Failure>(0);
  }
  if (context.size() == 1 && context.match_element<std::string>(0)) {
    return context.get_as<std::string>(0);
  }
  return to_string(error);
}

bool Settle(const caf::response_promise& promise, std::vector<caf::response_promise>& owed) {
  if (promise.async()) return true;
  const auto mine = std::ranges::find_if(owed, [&](const caf::response_promise& other) {
    return other.id() == promise.id() && other.source() == promise.source();
  });
  if (mine == owed.end()) return false;
  const Activity* const activity = CurrentHandling().activity;
  if (activity != nullptr && activity->trace) {
    activity->trace->Answered(promise.source(), promise.id());
  }
  owed.erase(mine);
  return true;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

Failure ThrownFailure() {
  try {
    throw;
  } catch (const FailureError& e) {
    return {FirstLine(e.what()), e.kind};
  } catch (const std::exception& e) {
    return FirstLine(e.what());
  } catch (...) {
    return "non-standard exception thrown";
  }
}

}  // namespace troupe
