// The base of every actor: keeps the text of exceptions, publishes its activity, lists the answers
// it waits for and owes, and annotates for ThreadSanitizer which messages order which memory
// accesses (Debian's CAF is not instrumented).
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <caf/actor_cast.hpp>
#include <caf/error.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_message.hpp>
#include <caf/response_promise.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/system_messages.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/activity.hpp"
#include "actors/debts.hpp"
#include "actors/message_trace.hpp"
#include "trace/clock.hpp"
#include "transport/abort_signal.hpp"
#include "transport/tensor_store.hpp"

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

/// Removes `promise` from `owed`, the requests that the handling actor has not answered, and records
/// the answer. Returns false if a failure of the actor has answered it.
bool Settle(const caf::response_promise& promise, std::vector<caf::response_promise>& owed);

/// The promise of an answer. The actor owes it until it is kept. The trace records which handling
/// kept it if the sender of the request is in another process, which cannot see that.
template <class Answer>
class Promise : public caf::typed_response_promise<Answer> {
 public:
  using Base = caf::typed_response_promise<Answer>;
  Promise() = default;
  /// `owed` is the actor's own list: holds this until it is kept.
  Promise(Base base, std::vector<caf::response_promise>& owed)
      : Base(std::move(base)), owed_(&owed) {
    if (this->pending() && !as_promise().async()) owed.push_back(*this);
  }

  /// An Answer, or a caf::error. Does nothing if a failure of the actor has answered the request.
  template <class Value>
  void deliver(Value&& value) {
    if (this->pending() && Settle(as_promise(), *owed_)) Base::deliver(std::forward<Value>(value));
  }

 private:
  const caf::response_promise& as_promise() { return *this; }

  std::vector<caf::response_promise>* owed_ = nullptr;  ///< of the actor that has this promise
};

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

  /// Answers every open request with `reason`, and every later one, too. No handler runs after the
  /// current one: all other messages are dropped.
  void RefuseAll(const caf::error& reason) {
    if (!failed()) failure_ = reason;
    while (!debts_.received.empty()) {
      caf::response_promise promise = debts_.received.front();
      Settle(promise, debts_.received);
      promise.deliver(reason);
    }
  }
  bool failed() const { return static_cast<bool>(failure_); }

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
    const auto fault = this->FaultAt(message);
    if (fault == PlantedFault::Kind::kLose) {
      scope.number = 0;  // a lost message was never handled
      return caf::invoke_message_result::consumed;
    }
    if (number != 0) trace->recorder()->Begin(number, begin_ns);
    if (fault) {
      this->current_mailbox_element(&element);  // its sender is answered when a fault throws
      this->Strike(*fault);
    }
    if (element.mid.is_response()) {
      const std::uint64_t answered = element.mid.request_id().integer_value();
      std::erase_if(debts_.sent, [&](const SentRequest& sent) { return sent.request == answered; });
    }
    if (message != nullptr && *message == typeid(ReportDebts)) {
      this->current_mailbox_element(&element);
      Base::template make_response_promise<Debts>().deliver(AllDebts());
      return caf::invoke_message_result::consumed;
    }
    if (failed() && !content.match_elements<caf::exit_msg>()) {
      if (element.mid.is_request()) {
        caf::response_promise(caf::strong_actor_ptr(this->ctrl()), element).deliver(failure_);
      }
      return caf::invoke_message_result::consumed;
    }
    return Base::consume(element);
  }
  bool cleanup(caf::error&& reason, caf::execution_unit* unit) override {
    this->activity()->ended.store(true, std::memory_order_relaxed);
    debts_.received.clear();  // they refer to this actor
    TROUPE_TSAN_RELEASE(this);
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

  Debts AllDebts() const {
    Debts all = debts_;
    if (expected_ && !failed()) all.expected = expected_();
    return all;
  }

  TracedMailbox mailbox_trace_;
  Debts debts_;  ///< all but `expected`
  std::function<ExpectedWaits()> expected_;
  caf::error failure_;  ///< answers all requests; none: the actor works
};

/// The self pointer of an actor with interface `Interface` and state `State`.
template <class Interface, class State>
using ActorPointer = caf::stateful_actor<State, ActorBase<typename Interface::base>>*;

/// Whether `error` says no more than that the receiver of a request is gone.
bool IsReceiverGone(const caf::error& error);
/// Raises the signal with an error that answers a request. If the receiver is gone, its process is
/// lost: then half a second later, for the watch has a better cause.
void RaiseFor(const std::shared_ptr<AbortSignal>& abort, const caf::error& reason);

/// Ends the work of an actor of the job with its first failure: raises the abort signal and answers
/// every request with `reason`.
template <class Self>
void Fail(Self* self, const caf::error& reason) {
  RaiseFor(self->state.config.abort, reason);
  self->RefuseAll(reason);
}

/// Sends a request and calls `then` with the answer. An error fails the sender.
template <class Self, class Handle, class Message, class Then>
void Ask(Self* self, const Handle& to, Message&& message, Then then) {
  self->request(to, caf::infinite, std::forward<Message>(message))
      .then(std::move(then), [self](const caf::error& reason) { Fail(self, reason); });
}

/// Fetches `buffer`, then sends `message` with it to `self`. A failure, which `what` describes, ends
/// the job. `device` is the GPU to fetch to.
template <class Self, class Message>
void FetchInto(Self* self, const Buffer& buffer, int device, const std::string& what,
               Message message) {
  const auto& config = self->state.config;
  message.asked = config.tensors->Asks(buffer);
  config.tensors->Fetch(
      buffer, what,
      OnBehalf([me = caf::actor_cast<caf::actor>(self), message](const Buffer& arrived) mutable {
        message.buffer = arrived;
        caf::anon_send(me, std::move(message));
      }),
      [abort = config.abort](const Failure& failure) { abort->Raise(failure); }, device);
}

/// Returns the exception in flight, with the first line of its text. Programs may throw anything.
Failure ThrownFailure();
/// Libraries append backtraces to their texts.
std::string FirstLine(const std::string& text);

}  // namespace troupe
