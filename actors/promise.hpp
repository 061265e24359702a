// The promise of an answer, for actors whose messages are traced: notes which handling kept it,
// where the asker is in another process and cannot know.
#pragma once

#include <utility>

#include <caf/actor_cast.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/activity.hpp"
#include "actors/message_trace.hpp"

namespace troupe {

template <class Answer>
class Promise : public caf::typed_response_promise<Answer> {
 public:
  using Base = caf::typed_response_promise<Answer>;
  Promise() = default;
  Promise(Base base) : Base(std::move(base)) {}

  /// An Answer, or a caf::error.
  template <class Value>
  void deliver(Value&& value) {
    const Activity* const activity = CurrentHandling().activity;
    if (activity != nullptr && activity->trace && this->pending()) {
      const caf::response_promise& promise = *this;
      activity->trace->Answered(promise.source(), promise.id());
    }
    Base::deliver(std::forward<Value>(value));
  }
};

}  // namespace troupe
