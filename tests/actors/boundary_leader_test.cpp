// The two ends of an edge, with the test in the place of the stages around them.
#include "actors/boundary_leader.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

namespace troupe {
namespace {

/// Tells a fake stage to answer its oldest open activation with -1 times what it got.
struct Reply {
  bool none = false;
};
/// Tells an emitter to send.
struct Emit {
  Activation activation;
};

}  // namespace
}  // namespace troupe
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Reply)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::Emit)
namespace troupe {
namespace {

/// A destination stage that keeps what arrives and answers when told.
using FakeStage = Downstream::extend<caf::reacts_to<Reply>>;
struct FakeStageState {
  static constexpr const char* name = "fake_stage";
  std::deque<Promise<Gradient>> askers;
  std::size_t answered = 0;
};
struct Inbox {
  std::vector<Activation> activations;
};

Gradient NegativeOf(const Activation& got) {
  Buffer g = Buffer::Allocate(got.shards[0].shape(), DType::kFloat64);
  for (std::int64_t i = 0; i < g.num_elements(); ++i) {
    g.as<double>()[i] = -got.shards[0].as<double>()[i];
  }
  return {got.unit, {g}};
}

FakeStage::behavior_type RunFakeStage(ActorPointer<FakeStage, FakeStageState> self,
                                      std::shared_ptr<Inbox> inbox) {
  return {
      [self, inbox](const Activation& activation) -> caf::result<Gradient> {
        inbox->activations.push_back(activation);
        auto answer = self->make_response_promise<Gradient>();
        self->state.askers.push_back(answer);
        return answer;
      },
      [self, inbox](const Reply& reply) {
        const Activation& got = inbox->activations[self->state.answered++];
        self->state.askers.front().deliver(reply.none ? Gradient{got.unit, {}} : NegativeOf(got));
        self->state.askers.pop_front();
      }};
}

/// A source stage that sends when told and keeps the answers.
struct Outbox {
  std::vector<Gradient> gradients;
  std::vector<std::string> errors;
};
using Emitter = caf::typed_actor<caf::reacts_to<Emit>>;
struct EmitterState {
  static constexpr const char* name = "emitter";
};
Emitter::behavior_type RunEmitter(ActorPointer<Emitter, EmitterState> self, Downstream leader,
                                  std::shared_ptr<Outbox> outbox) {
  return {[=](const Emit& emit) {
    self->request(leader, caf::infinite, emit.activation)
        .then([outbox](const Gradient& gradient) { outbox->gradients.push_back(gradient); },
              [outbox](const caf::error& e) { outbox->errors.push_back(TextOf(e)); });
  }};
}

/// An edge of dp `a` -> dp `b` over `samples` samples per microbatch.
class EdgeFixture {
 public:
  EdgeFixture() : system_(config_) {}
  ~EdgeFixture() {
    for (auto& actor : actors_) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    Deliver();
  }

  void Open(int a, int b, std::int64_t samples, int credits = 4) {
    const Assignment source = EvenAssignment(samples, a);
    const Assignment destination = EvenAssignment(samples, b);
    std::map<int, DestinationLeader> leaders;
    for (int d = 0; d < b; ++d) {
      inboxes.push_back(std::make_shared<Inbox>());
      auto stage = Keep(system_.spawn(RunFakeStage, inboxes.back()));
      stages_.push_back(stage);
      DestinationLeaderConfig config{"e",
                                     d,
                                     0,
                                     source,
                                     destination,
                                     stage,
                                     Buffer::kHost,
                                     tensors_,
                                     abort,
                                     std::vector<ProcessId>(static_cast<std::size_t>(a))};
      leaders[d] = Keep(system_.spawn(RunDestinationLeader, std::move(config)));
    }
    for (int s = 0; s < a; ++s) {
      SourceLeaderConfig config{"e",           s,
                                credits,       source,
                                destination,   leaders,
                                Buffer::kHost, tensors_,
                                abort,         std::vector<ProcessId>(static_cast<std::size_t>(b))};
      auto leader = Keep(system_.spawn(RunSourceLeader, std::move(config)));
      outboxes.push_back(std::make_shared<Outbox>());
      emitters_.push_back(Keep(system_.spawn(RunEmitter, Downstream(leader), outboxes.back())));
    }
    source_ = source;
  }

  /// Every source replica sends microbatch `m`; sample n has rows_of[n] rows of value 100*n + row.
  void Send(std::int64_t m, const std::vector<std::int64_t>& rows_of) {
    for (std::size_t s = 0; s < emitters_.size(); ++s) SendFrom(s, m, rows_of);
    Deliver();
  }
  void SendFrom(std::size_t s, std::int64_t m, const std::vector<std::int64_t>& rows_of,
                std::int64_t shift = 0) {
    auto table = std::make_shared<RowTable>();
    std::vector<double> values;
    for (const Interval& held : source_[s]) {
      for (auto n = held.begin; n < held.end; ++n) {
        table->samples.push_back(n + shift);
        table->rows.push_back(rows_of[static_cast<std::size_t>(n)]);
        for (std::int64_t r = 0; r < table->rows.back(); ++r) {
          values.push_back(static_cast<double>(100 * n + r));
        }
      }
    }
    Buffer rows = Buffer::Allocate({std::ssize(values), 1}, DType::kFloat64);
    std::copy(values.begin(), values.end(), rows.as<double>());
    caf::anon_send(emitters_[s], Emit{{m, 0, {rows}, table, {2, m, false}}});
  }
  /// Destination `d` answers its oldest open activation with -1 times what it got.
  void Answer(std::size_t d, bool none = false) {
    caf::anon_send(stages_[d], Reply{none});
    Deliver();
  }
  void Deliver() { dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).run(); }
  static std::vector<double> Values(const Buffer& buffer) {
    return {buffer.as<double>(), buffer.as<double>() + buffer.num_elements()};
  }

  std::vector<std::shared_ptr<Inbox>> inboxes;
  std::vector<std::shared_ptr<Outbox>> outboxes;
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();

 private:
  struct Config : caf::actor_system_config {
    Config() { set("scheduler.policy", caf::atom("testing")); }
  };
  template <class Handle>
  Handle Keep(Handle handle) {
    actors_.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  }

  Config config_;
  caf::actor_system system_;
  std::shared_ptr<TensorStore> tensors_ = std::make_shared<TensorStore>(abort);
  std::vector<Emitter> emitters_;
  std::vector<FakeStage> stages_;
  std::vector<caf::actor> actors_;
  Assignment source_;
};

}  // namespace

TEST_CASE_METHOD(EdgeFixture, "3 replicas feed 2: rows arrive in sample order and go back home",
                 "[actors]") {
  Open(3, 2, 6);
  const std::vector<std::int64_t> rows = {2, 0, 1, 3, 0, 1};
  Send(0, rows);
  REQUIRE(inboxes[0]->activations.size() == 1);
  REQUIRE(inboxes[1]->activations.size() == 1);
  CHECK(Values(inboxes[0]->activations[0].shards[0]) == std::vector<double>{0, 1, 200});
  CHECK(Values(inboxes[1]->activations[0].shards[0]) == std::vector<double>{300, 301, 302, 500});
  CHECK(inboxes[0]->activations[0].rows->samples == std::vector<std::int64_t>{0, 1, 2});
  CHECK(inboxes[0]->activations[0].rows->rows == std::vector<std::int64_t>{2, 0, 1});
  Answer(0);
  CHECK(outboxes[0]->gradients.size() == 1);
  CHECK(outboxes[1]->gradients.empty());  // its rows went to both
  Answer(1);
  CHECK(Values(outboxes[0]->gradients[0].shards[0]) == std::vector<double>{0, -1});
  CHECK(Values(outboxes[1]->gradients[0].shards[0]) == std::vector<double>{-200, -300, -301, -302});
  CHECK(Values(outboxes[2]->gradients[0].shards[0]) == std::vector<double>{-500});
}

TEST_CASE_METHOD(EdgeFixture, "rows that come from one source are handed on without a copy",
                 "[actors]") {
  Open(1, 2, 2);
  Send(0, {3, 2});
  const Buffer& first = inboxes[0]->activations[0].shards[0];
  const Buffer& second = inboxes[1]->activations[0].shards[0];
  CHECK(second.data() == first.data() + 3 * sizeof(double));
}

TEST_CASE_METHOD(EdgeFixture, "credits bound the microbatches under way and all come back",
                 "[actors]") {
  Open(2, 1, 2, 2);
  for (std::int64_t m = 0; m < 5; ++m) Send(m, {1, 1});
  CHECK(inboxes[0]->activations.size() == 2);
  for (std::size_t m = 0; m < 5; ++m) {
    Answer(0);
    CHECK(inboxes[0]->activations.size() == std::min<std::size_t>(5, m + 3));
    CHECK(outboxes[0]->gradients.size() == m + 1);
    CHECK(outboxes[1]->gradients.size() == m + 1);
  }
}

TEST_CASE_METHOD(EdgeFixture,
                 "microbatches are delivered in order even when a later one has no rows",
                 "[actors]") {
  Open(2, 1, 2);
  SendFrom(0, 0, {0, 2});
  SendFrom(0, 1, {0, 0});
  Deliver();
  SendFrom(1, 0, {0, 2});
  SendFrom(1, 1, {0, 0});
  Deliver();
  REQUIRE(inboxes[0]->activations.size() == 2);
  CHECK(inboxes[0]->activations[0].unit == 0);
  CHECK(inboxes[0]->activations[1].unit == 1);
  CHECK(inboxes[0]->activations[1].place == UnitPlace{2, 1});
  CHECK(inboxes[0]->activations[1].shards[0].num_rows() == 0);
}

TEST_CASE_METHOD(EdgeFixture, "no gradient is an answer too", "[actors]") {
  Open(2, 1, 2);
  Send(0, {1, 1});
  Answer(0, true);
  REQUIRE(outboxes[1]->gradients.size() == 1);
  CHECK(outboxes[1]->gradients[0].shards.empty());
}

TEST_CASE_METHOD(EdgeFixture, "rows of somebody else's sample stop the job by name", "[actors]") {
  Open(2, 1, 4);
  SendFrom(1, 0, {1, 1, 1, 1}, 1);  // says it holds samples 3 and 4
  Deliver();
  CHECK(abort->cause() ==
        "edge e source 1, microbatch 0 (step 2 mb 0): expected sample 2 at place 0, got sample 3");
  REQUIRE(outboxes[1]->errors.size() == 1);
}

}  // namespace troupe
