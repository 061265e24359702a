// One actor of the product under CAF's deterministic scheduler, with the test in the place of all
// its neighbours. A probe stands for one neighbour: it keeps the messages that it receives and
// answers a request when the test says so.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>

#include "actors/actor_base.hpp"
#include "messages/facts.hpp"
#include "messages/node.hpp"
#include "transport/abort_signal.hpp"
#include "transport/buffer.hpp"
#include "transport/tensor_store.hpp"

namespace troupe {

/// From the test to a probe, which calls it with itself.
struct ProbeCall {
  std::function<void(caf::event_based_actor*)> run;
};

}  // namespace troupe
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::ProbeCall)
namespace troupe {

/// The messages of all probes in the order in which these handled them: "device 2: RunForward 5".
/// Of two probes with one message each, the one that was sent first comes first.
using ProbeLog = std::vector<std::string>;

/// The answer to a request of the test, once it has come.
template <class Answer>
struct Answered {
  std::vector<Answer> answers;      ///< a correct actor gives one
  std::vector<std::string> errors;  ///< or an error
  bool pending() const { return answers.empty() && errors.empty(); }
};

/// A neighbour of the actor under test.
class Probe {
 public:
  Probe(caf::actor_system& system, std::string name, std::shared_ptr<ProbeLog> log)
      : inbox_(std::make_shared<std::deque<Entry>>()),
        actor_(system.spawn(Run, std::move(name), inbox_, std::move(log))) {}

  const caf::actor& actor() const { return actor_; }
  /// As a neighbour of the interface `Handle`.
  template <class Handle>
  Handle As() const {
    return caf::actor_cast<Handle>(actor_);
  }

  /// All messages of a type, the oldest first.
  template <class Message>
  std::vector<Message> Received() const {
    std::vector<Message> all;
    for (const Entry& entry : *inbox_) {
      if (Holds<Message>(entry)) all.push_back(entry.content.template get_as<Message>(0));
    }
    return all;
  }
  template <class Message>
  std::size_t Count() const {
    return Received<Message>().size();
  }
  /// The oldest message of a type that has no answer. There must be one.
  template <class Message>
  Message Oldest() const {
    return Unanswered<Message>().content.template get_as<Message>(0);
  }

  /// Answers the oldest request of type `Request` that has no answer, or the one `place` after it;
  /// `answer` may be a caf::error.
  template <class Request, class Answer>
  void Give(Answer answer, std::size_t place = 0) {
    Entry& entry = Unanswered<Request>(place);
    entry.answered = true;
    caf::anon_send(actor_, ProbeCall{[promise = entry.promise, answer](auto*) mutable {
                     promise.deliver(std::move(answer));
                   }});
  }
  /// The oldest request of the type never gets an answer.
  template <class Request>
  void Drop() {
    Unanswered<Request>().answered = true;
  }
  /// Forgets all messages; requests among them get no answer.
  void Clear() { inbox_->clear(); }

 private:
  struct Entry {
    caf::message content;
    caf::response_promise promise;
    bool answered = false;
  };

  static caf::behavior Run(caf::event_based_actor* self, const std::string& name,
                           const std::shared_ptr<std::deque<Entry>>& inbox,
                           const std::shared_ptr<ProbeLog>& log) {
    self->set_default_handler(
        [=](caf::scheduled_actor*, caf::message_view& view) -> caf::result<caf::message> {
          const std::type_info* const type = view.content().type(0).second;
          std::string line = name + ": " + MessageName(type);
          if (const MessageType* const traced = type ? FindMessageType(*type) : nullptr) {
            const MessageFacts facts = traced->facts(view.content());
            if (facts.unit >= 0) line += " " + std::to_string(facts.unit);
          }
          log->push_back(line);
          caf::response_promise promise = self->make_response_promise();
          inbox->push_back({view.move_content_to_message(), promise});
          return promise;
        });
    return {[self](const ProbeCall& call) { call.run(self); }};
  }

  template <class Message>
  static bool Holds(const Entry& entry) {
    return entry.content.template match_elements<Message>();
  }
  template <class Message>
  Entry& Unanswered(std::size_t place = 0) const {
    for (Entry& entry : *inbox_) {
      if (entry.answered || !Holds<Message>(entry)) continue;
      if (place-- == 0) return entry;
    }
    throw std::logic_error("no " + MessageName(&typeid(Message)) + " waits for an answer");
  }

  std::shared_ptr<std::deque<Entry>> inbox_;
  caf::actor actor_;
};

/// The system of one actor and its probes. Every call delivers all messages that follow from it.
class ActorFixture {
 public:
  ActorFixture() : system_(config_) {}
  ActorFixture(const ActorFixture&) = delete;
  ActorFixture& operator=(const ActorFixture&) = delete;
  ~ActorFixture() {
    for (const caf::actor& actor : actors_) {
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    }
    Deliver();
    for (Probe& probe : probes_) probe.Clear();  // requests hold the probe that got them
  }

  /// Spawns the actor under test.
  template <class Run, class ActorConfig>
  auto Spawn(Run run, ActorConfig config) {
    auto handle = system_.spawn(run, std::move(config));
    Keep(handle);
    Deliver();
    return handle;
  }
  /// A probe that lives as long as the fixture.
  Probe& AddProbe(const std::string& name) {
    Probe& probe = probes_.emplace_back(system_, name, log_);
    Keep(probe.actor());
    return probe;
  }
  /// Ends `handle` with the fixture.
  template <class Handle>
  void Keep(const Handle& handle) {
    actors_.push_back(caf::actor_cast<caf::actor>(handle));
  }

  template <class Handle, class Message>
  void Send(const Handle& to, Message message) {
    caf::anon_send(to, std::move(message));
    Deliver();
  }
  /// Requests come from one actor, in the order in which the test makes them.
  template <class Answer, class Handle, class Request>
  std::shared_ptr<Answered<Answer>> Ask(const Handle& of, Request request) {
    auto answered = Post<Answer>(of, std::move(request));
    Deliver();
    return answered;
  }
  /// The same, before anything is delivered.
  template <class Answer, class Handle, class Request>
  std::shared_ptr<Answered<Answer>> Post(const Handle& of, Request request) {
    auto answered = std::make_shared<Answered<Answer>>();
    if (!client_) client_ = AddProbe("client").actor();
    caf::anon_send(client_, ProbeCall{[=](caf::event_based_actor* self) {
                     self->request(of, caf::infinite, request)
                         .then([=](const Answer& answer) { answered->answers.push_back(answer); },
                               [=](const caf::error& error) {
                                 answered->errors.push_back(FailureOf(error).text);
                               });
                   }});
    return answered;
  }
  /// `probe` answers the oldest request of the type that waits for it, or the one `place` after it.
  template <class Request, class Answer>
  void Give(Probe& probe, Answer answer, std::size_t place = 0) {
    probe.Give<Request>(std::move(answer), place);
    Deliver();
  }
  /// The same with a failure.
  template <class Request>
  void Refuse(Probe& probe, const std::string& text) {
    Give<Request>(probe, MakeFailure(text));
  }
  void Deliver() {
    while (Step()) {
    }
  }
  /// Delivers one message; false where there is none.
  bool Step() { return scheduler().try_run_once(); }
  /// The system's clock stands still but for this.
  void Advance(std::int64_t ns) {
    scheduler().advance_time(caf::timespan(ns));
    Deliver();
  }

  /// Messages to all probes since the last call, in one order.
  ProbeLog TakeLog() { return std::exchange(*log_, {}); }

  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();

 private:
  struct SystemConfig : caf::actor_system_config {
    SystemConfig() {
      set("scheduler.policy", caf::atom("testing"));
      set("scheduler.max-throughput", std::size_t{1});
    }
  };

  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  SystemConfig config_;
  caf::actor_system system_;
  std::shared_ptr<ProbeLog> log_ = std::make_shared<ProbeLog>();
  std::deque<Probe> probes_;  ///< a deque: references stay valid
  caf::actor client_;
  std::vector<caf::actor> actors_;
};

/// The data plane of process 0 of two: tensors of process 1, whose bytes come when the test says so.
class FarTensors : public TensorCarrier {
 public:
  explicit FarTensors(std::shared_ptr<TensorStore> store) : store_(std::move(store)) {
    store_->Attach(this);
  }
  ~FarTensors() override { store_->Detach(); }

  /// A tensor of process 1 as a message brings it.
  Buffer Name(const std::vector<double>& values) {
    tensors_.push_back(values);
    return store_->Resolve({.home = 1,
                            .key = tensors_.size(),
                            .weight = 1,
                            .shape = {std::ssize(values), 1},
                            .dtype = DType::kFloat64});
  }
  /// What has been asked for and is not here, as errors would call it, the oldest first.
  std::vector<std::string> Open() const {
    std::vector<std::string> names;
    for (const Fetch& fetch : open_) names.push_back(fetch.what);
    return names;
  }
  /// The bytes of one of them arrive.
  void Arrive(std::size_t place = 0) {
    const Fetch fetch = open_.at(place);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
    std::ranges::copy(tensors_.at(fetch.key - 1), fetch.destination.as<double>());
    fetch.received();
  }

  ProcessId self() const override { return 0; }
  void Pull(std::uint64_t key, std::int64_t, Reception it) override {
    open_.push_back({key, std::move(it.destination), std::move(it.what), std::move(it.received)});
  }
  void Return(ProcessId, std::uint64_t, std::uint64_t) override {}

 private:
  struct Fetch {
    std::uint64_t key = 0;
    Buffer destination;
    std::string what;
    std::function<void()> received;
  };
  std::shared_ptr<TensorStore> store_;
  std::vector<std::vector<double>> tensors_;  ///< by key, from 1
  std::vector<Fetch> open_;
};

/// Rows of one value each.
inline Buffer RowsOf(const std::vector<double>& values) {
  Buffer rows = Buffer::Allocate({std::ssize(values), 1}, DType::kFloat64);
  std::ranges::copy(values, rows.as<double>());
  return rows;
}
inline std::vector<double> ValuesOf(const Buffer& rows) {
  return {rows.as<double>(), rows.as<double>() + rows.num_elements()};
}
/// Of buffers in pieces, or of one per shard.
inline std::vector<std::vector<double>> ValuesOf(const std::vector<Buffer>& buffers) {
  std::vector<std::vector<double>> all;
  for (const Buffer& rows : buffers) all.push_back(ValuesOf(rows));
  return all;
}

}  // namespace troupe
