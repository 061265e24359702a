// The base of every actor: keeps the text of exceptions, publishes its activity, lists the answers
// it waits for and owes, and annotates for ThreadSanitizer which messages order which memory
// accesses (Debian's CAF is not instrumented).
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include <caf/error.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_message.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/activity.hpp"
#include "actors/debts.hpp"
#include "actors/message_trace.hpp"
#include "actors/promise.hpp"
#include "trace/clock.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define TROUPE_TSAN_RELEASE(address) __tsan_release(address)
#define TROUPE_TSAN_ACQUIRE(address) __tsan_acquire(address)
#else
#define TROUPE_TSAN_RELEASE(address) static_cast<void>(0)
#define TROUPE_TSAN_ACQUIRE(address) static_cast<void>(0)
#endif

namespace troupe {

/// `failure` as an error that travels in messages.
inline caf::error MakeFailure(const Failure& failure) {
  return caf::make_error(caf::sec::runtime_error, failure);
}

/// The failure in `error`: the one given to MakeFailure, else CAF's own words as a kError.
Failure FailureOf(const caf::error& error);

template <class Base>
class ActorBase : public Base, public Active {
 public:
  using Base::Base;
  using Base::consume;
  using Base::enqueue;

  /// CAF's request of one message; it counts as unanswered until the answer or an error arrives.
  template <class Handle, class Timeout, class Message>
  auto request(const Handle& to, const Timeout& timeout, Message&& message) {
    using Type = std::decay_t<Message>;
    SentRequest sent{0, to.address(), KindOf<Type>(), NumberOf(message), RanksOf(message)};
    auto answer = Base::request(to, timeout, std::forward<Message>(message));
    sent.request = LastRequest();
    debts_.sent.push_back(std::move(sent));
    return answer;
  }
  /// CAF's promise of an answer; it counts as owed until it is kept.
  template <class Answer>
  Promise<Answer> make_response_promise() {
    return {Base::template make_response_promise<Answer>(), debts_.received};
  }
  /// `expected` lists the messages that the actor waits for without a separate request.
  void Expects(std::function<ExpectedWaits()> expected) { expected_ = std::move(expected); }
  /// Requests without an answer, the oldest first.
  const std::vector<SentRequest>& unanswered() const { return debts_.sent; }

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit* unit) override {
    if (MessageTrace* const trace = this->activity()->trace.get()) {
      const std::uint64_t number = trace->Sent(*element, this->id(), mailbox_trace_.size());
      if (number != 0) mailbox_trace_.Put(element.get(), number);
    }
    TROUPE_TSAN_RELEASE(element.get());
    this->activity()->received.fetch_add(1, std::memory_order_relaxed);
    Base::enqueue(std::move(element), unit);
  }
  caf::invoke_message_result consume(caf::mailbox_element& element) override {
    TROUPE_TSAN_ACQUIRE(&element);
    TROUPE_TSAN_ACQUIRE(this);
    Activity& activity = *this->activity();
    const std::int64_t begin_ns = NowNs();
    MessageTrace* const trace = activity.trace.get();
    const std::uint64_t number = trace == nullptr ? 0 : mailbox_trace_.Take(&element);
    struct Scope {
      ActorBase* self;
      std::uint64_t number;
      std::uint64_t first_request;
      Handling before = CurrentHandling();
      ~Scope() {
        Activity& mine = *self->activity();
        if (number != 0) {
          mine.trace->recorder()->End(number, NowNs(), first_request, self->LastRequest());
        }
        CurrentHandling() = before;
        mine.busy_since_ns.store(0, std::memory_order_relaxed);
        mine.handled.fetch_add(1, std::memory_order_relaxed);
        TROUPE_TSAN_RELEASE(self);
        self->StayIfFrozen();
      }
    } scope{this, number, LastRequest()};
    if (trace != nullptr) {
      const std::uint64_t id = number == 0 ? 0 : trace->recorder()->IdOf(number);
      CurrentHandling() = {id, trace->NumberOf(this->id()), &activity};
    }
    const caf::type_erased_tuple& content = element.content();
    const std::type_info* const message = content.empty() ? nullptr : content.type(0).second;
    activity.message.store(message, std::memory_order_relaxed);
    activity.busy_since_ns.store(begin_ns, std::memory_order_relaxed);
    if (number != 0 && !this->LosesNext(message)) trace->recorder()->Begin(number, begin_ns);
    if (this->has_fault()) {
      this->current_mailbox_element(&element);  // its sender is answered when a fault throws
      if (this->MeetsFault(message)) {
        scope.number = 0;  // a lost message was never handled
        return caf::invoke_message_result::consumed;
      }
    }
    if (element.mid.is_response()) ForgetRequest(element.mid.request_id().integer_value());
    if (message != nullptr && *message == typeid(ReportDebts)) {
      this->current_mailbox_element(&element);
      Base::template make_response_promise<Debts>().deliver(AllDebts());
      return caf::invoke_message_result::consumed;
    }
    return Base::consume(element);
  }
  bool cleanup(caf::error&& reason, caf::execution_unit* unit) override {
    this->activity()->ended.store(true, std::memory_order_relaxed);
    return Base::cleanup(std::move(reason), unit);
  }
  void launch(caf::execution_unit* unit, bool lazy, bool hide) override {
    TROUPE_TSAN_RELEASE(this);
    Base::launch(unit, lazy, hide);
  }
  void initialize() override {
    TROUPE_TSAN_ACQUIRE(this);
    this->set_exception_handler([](caf::scheduled_actor* self, std::exception_ptr& thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const std::exception& e) {
        return MakeFailure(std::string(self->name()) + ": " + e.what());
      } catch (...) {
        return MakeFailure(std::string(self->name()) + ": unknown exception");
      }
    });
    // An error that arrives as a stray message must not end a long-lived actor.
    this->set_error_handler([](caf::error&) {});
    // A message without a handler (an answer that outlived its question, when a job is torn down)
    // is dropped without CAF's print to standard error; a request still gets an error.
    this->set_default_handler(caf::drop);
    Base::initialize();
    TROUPE_TSAN_RELEASE(this);
  }
  void on_destroy() override {
    TROUPE_TSAN_ACQUIRE(this);
    Base::on_destroy();
  }
  ~ActorBase() override { TROUPE_TSAN_ACQUIRE(this); }

 private:
  /// Every sender numbers its own requests.
  std::uint64_t LastRequest() const { return this->last_request_id_.request_id().integer_value(); }

  void ForgetRequest(std::uint64_t number) {
    const auto found = std::ranges::find(debts_.sent, number, &SentRequest::request);
    if (found != debts_.sent.end()) debts_.sent.erase(found);
  }
  Debts AllDebts() const {
    Debts all = debts_;
    if (expected_) all.expected = expected_();
    return all;
  }

  TracedMailbox mailbox_trace_;
  Debts debts_;  ///< all but `expected`
  std::function<ExpectedWaits()> expected_;
};

/// The self pointer of an actor with interface `Interface` and state `State`.
template <class Interface, class State>
using ActorPointer = caf::stateful_actor<State, ActorBase<typename Interface::base>>*;

}  // namespace troupe
