// The promise of an answer. The actor owes it until it is kept. The trace records which handling
// kept it if the sender of the request is in another process, which cannot see that.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/activity.hpp"
#include "actors/debts.hpp"
#include "actors/message_trace.hpp"

namespace troupe {

template <class Answer>
class Promise : public caf::typed_response_promise<Answer> {
 public:
  using Base = caf::typed_response_promise<Answer>;
  Promise() = default;
  /// `owed` is the actor's own list: holds this until it is kept.
  Promise(Base base, std::vector<ReceivedRequest>& owed) : Base(std::move(base)), owed_(&owed) {
    if (!this->pending() || as_promise().async()) return;
    owed.push_back({Number(), caf::actor_cast<caf::actor_addr>(as_promise().source())});
  }

  /// An Answer, or a caf::error.
  template <class Value>
  void deliver(Value&& value) {
    if (this->pending()) {
      const Activity* const activity = CurrentHandling().activity;
      if (activity != nullptr && activity->trace) {
        activity->trace->Answered(as_promise().source(), as_promise().id());
      }
      const auto mine = std::find_if(owed_->begin(), owed_->end(), [&](const auto& owed) {
        return owed.request == Number() && owed.from == as_promise().source();
      });
      if (mine != owed_->end()) owed_->erase(mine);
    }
    Base::deliver(std::forward<Value>(value));
  }

 private:
  const caf::response_promise& as_promise() { return *this; }
  std::uint64_t Number() { return as_promise().id().request_id().integer_value(); }

  std::vector<ReceivedRequest>* owed_ = nullptr;  ///< of the actor that has this promise
};

}  // namespace troupe
