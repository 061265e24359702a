#include "actors/actor_base.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <caf/message.hpp>
#include <caf/sec.hpp>

namespace troupe {

Failure FailureOf(const caf::error& error) {
  const caf::message& context = error.context();
  if (context.size() == 1 && context.match_element<Failure>(0)) {
    return context.get_as<Failure>(0);
  }
  if (context.size() == 1 && context.match_element<std::string>(0)) {
    return context.get_as<std::string>(0);
  }
  if (IsReceiverGone(error)) return {"an actor of another process is gone", FailureKind::kLost};
  return to_string(error);
}

bool IsReceiverGone(const caf::error& error) {
  return error == caf::sec::request_receiver_down || error == caf::sec::remote_linking_failed;
}

void RaiseFor(const std::shared_ptr<AbortSignal>& abort, const caf::error& reason) {
  static constexpr std::chrono::milliseconds kPatience{500};
  if (!IsReceiverGone(reason)) return abort->Raise(FailureOf(reason));
  std::thread([abort, failure = FailureOf(reason)] {
    std::this_thread::sleep_for(kPatience);
    abort->Raise(failure);
  }).detach();
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
