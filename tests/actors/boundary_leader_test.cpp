// The two ends of an edge, with the test in the place of the stages around them.
#include "actors/boundary_leader.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

#include "layout/at.hpp"
#include "tests/actors/probes.hpp"

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

/// A destination stage that keeps what arrives and answers on request.
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
  Gradient gradient{got.unit, {}};
  for (const Buffer& rows : got.shards) {
    Buffer g = Buffer::Allocate(rows.shape(), DType::kFloat64);
    for (std::int64_t i = 0; i < g.num_elements(); ++i) g.as<double>()[i] = -rows.as<double>()[i];
    gradient.shards.push_back(g);
  }
  return gradient;
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

/// A source stage that sends on request and keeps the answers.
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
              [outbox](const caf::error& e) { outbox->errors.push_back(FailureOf(e).text); });
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

  void Open(int a, int b, std::int64_t samples, int credits = 4, const RowCut& source_cut = {},
            const RowCut& destination_cut = {}) {
    const Assignment source = EvenAssignment(samples, a);
    const Assignment destination = EvenAssignment(samples, b);
    a *= source_cut.parts;
    b *= destination_cut.parts;
    std::map<int, DestinationLeader> leaders;
    for (int d = 0; d < b; ++d) {
      inboxes.push_back(std::make_shared<Inbox>());
      auto stage = Keep(system_.spawn(RunFakeStage, inboxes.back()));
      stages_.push_back(stage);
      const std::vector<ProcessId> homes(static_cast<std::size_t>(a));
      DestinationLeaderConfig config{{"e", d, source, destination, Buffer::kHost, tensors_, abort,
                                      homes, source_cut, destination_cut},
                                     0,
                                     stage,
                                     {}};
      leaders[d] = Keep(system_.spawn(RunDestinationLeader, std::move(config)));
    }
    for (int s = 0; s < a; ++s) {
      const std::vector<ProcessId> homes(static_cast<std::size_t>(b));
      SourceLeaderConfig config{{"e", s, source, destination, Buffer::kHost, tensors_, abort, homes,
                                 source_cut, destination_cut},
                                credits,
                                leaders};
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
  /// The shard's part of rows of value 100 * sample + row.
  void SendPart(std::size_t s, std::int64_t m, const RowTable& replica, const RowCut& cut) {
    const std::vector<double> values =
        ValuesIn(CutTable(replica, cut, static_cast<int>(s) % cut.parts));
    Buffer rows = Buffer::Allocate({std::ssize(values), 1}, DType::kFloat64);
    std::copy(values.begin(), values.end(), rows.as<double>());
    caf::anon_send(emitters_[s], Emit{{m, 0, {rows}, std::make_shared<RowTable>(replica), {2, m}}});
  }
  static std::vector<double> ValuesIn(const RowTable& table) {
    std::vector<double> values;
    for (const RowRun& run : RunsOf(table)) {
      for (std::int64_t row = run.first; row < run.first + run.count; ++row) {
        values.push_back(static_cast<double>(100 * run.sample + row));
      }
    }
    return values;
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

/// One leader of the edge "e", with probes in the place of its stage and of two leaders at the other
/// end. A microbatch has four samples.
class LeaderFixture : public ActorFixture {
 public:
  /// Of the only source replica.
  void OpenSource(int credits) {
    SourceLeaderConfig config;
    config.edge = "e";
    config.credits = credits;
    config.source = EvenAssignment(4, 1);
    config.destination = EvenAssignment(4, 2);
    config.peers = {{0, peers[0]->As<DestinationLeader>()}, {1, peers[1]->As<DestinationLeader>()}};
    config.tensors = tensors;
    config.abort = abort;
    config.peer_homes = {0, 0};
    source = Spawn(RunSourceLeader, std::move(config));
  }
  /// Of the only destination replica.
  void OpenDestination() {
    DestinationLeaderConfig config;
    config.edge = "e";
    config.link = 7;
    config.source = EvenAssignment(4, 2);
    config.destination = EvenAssignment(4, 1);
    config.stage = stage.As<Downstream>();
    config.tensors = tensors;
    config.abort = abort;
    config.peer_homes = {0, 0};
    destination = Spawn(RunDestinationLeader, std::move(config));
  }
  /// Four samples of one row each, 10 * m + n.
  auto Activate(std::int64_t m) {
    const auto first = static_cast<double>(10 * m);
    const auto rows = std::make_shared<RowTable>(RowTable{{0, 1, 2, 3}, {1, 1, 1, 1}});
    return Ask<Gradient>(
        source,
        Activation{m, 0, {RowsOf({first, first + 1, first + 2, first + 3})}, rows, {2, m, false}});
  }
  /// The answer to the oldest slice that a peer has, or to the one `place` after it.
  void GiveSlice(std::size_t peer, std::int64_t m, const std::vector<double>& values,
                 std::size_t place = 0) {
    Give<Slice>(*peers[peer], GradientSlice{m, RowsOf(values)}, place);
  }
  auto GiveRows(int from, std::int64_t m, Buffer rows) {
    const auto first = 2 * from;
    const auto table = std::make_shared<RowTable>(RowTable{{first, first + 1}, {1, 1}});
    return Ask<GradientSlice>(destination, Slice{m, from, std::move(rows), table, {2, m, false}});
  }

  std::shared_ptr<TensorStore> tensors = std::make_shared<TensorStore>(abort);
  std::vector<Probe*> peers = {&AddProbe("leader 0"), &AddProbe("leader 1")};
  Probe& stage = AddProbe("stage");
  SourceLeader source;
  DestinationLeader destination;
};

}  // namespace

TEST_CASE_METHOD(EdgeFixture, "3 replicas feed 2: rows arrive in sample order and go back home",
                 "[actors][leader]") {
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
                 "[actors][leader]") {
  Open(1, 2, 2);
  Send(0, {3, 2});
  const Buffer& first = inboxes[0]->activations[0].shards[0];
  const Buffer& second = inboxes[1]->activations[0].shards[0];
  CHECK(second.data() == first.data() + 3 * sizeof(double));
}

TEST_CASE_METHOD(EdgeFixture, "credits bound the microbatches under way and all come back",
                 "[actors][leader]") {
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
                 "[actors][leader]") {
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

TEST_CASE_METHOD(EdgeFixture,
                 "rows go from the parts of a replica to the parts that have their tokens",
                 "[actors][leader]") {
  const RowCut items{RowCut::By::kItems, 2, 5};
  const int slices = GENERATE(1, 2);
  const RowCut context{.by = RowCut::By::kContext, .parts = 3, .slices = slices};
  Open(2, 2, 4, 4, items, context);
  // Two items, none, one that begins late, and one that leaves rows out.
  const RowTable whole{
      {0, 1, 2, 3},
      {10, 0, 5, 5},
      {21, 4, 13, 8},
      {{0, 0, 5, 2}, {0, 5, 5, 9}, {2, 0, 5, 8}, {3, 0, 2, 1}, {3, 2, 1, -1}, {3, 3, 2, 3}}};
  const auto of_replica = [&](std::int64_t replica) {
    return SamplesOf(whole, {{2 * replica, 2 * replica + 2}});
  };
  for (std::size_t s = 0; s < 4; ++s) {
    SendPart(s, 0, of_replica(static_cast<std::int64_t>(s) / 2), items);
  }
  Deliver();
  for (int d = 0; d < 6; ++d) {
    INFO("destination " << d);
    const RowTable expected = CutTable(of_replica(d / 3), context, d % 3);
    REQUIRE(inboxes[At(d)]->activations.size() == 1);
    const Activation& got = inboxes[At(d)]->activations[0];
    CHECK(*got.rows == expected);
    REQUIRE(std::ssize(got.shards) == slices);
    std::int64_t num_rows = 0;
    for (int slice = 0; slice < slices; ++slice) {
      const RowTable own = SliceTable(expected, context, d % 3, slice);
      CHECK(Values(got.shards[At(slice)]) == ValuesIn(own));
      num_rows += own.num_rows();
    }
    CHECK(num_rows == expected.num_rows());
  }
  for (std::size_t d = 6; d-- > 0;) Answer(d);
  for (int s = 0; s < 4; ++s) {
    INFO("source " << s);
    std::vector<double> expected = ValuesIn(CutTable(of_replica(s / 2), items, s % 2));
    for (double& value : expected) value = -value;
    REQUIRE(outboxes[At(s)]->gradients.size() == 1);
    CHECK(Values(outboxes[At(s)]->gradients[0].shards[0]) == expected);
  }
}

TEST_CASE_METHOD(EdgeFixture, "no gradient is an answer too", "[actors][leader]") {
  Open(2, 1, 2);
  Send(0, {1, 1});
  Answer(0, true);
  REQUIRE(outboxes[1]->gradients.size() == 1);
  CHECK(outboxes[1]->gradients[0].shards.empty());
}

TEST_CASE_METHOD(EdgeFixture, "rows of another replica's sample stop the job by name",
                 "[actors][leader]") {
  Open(2, 1, 4);
  SendFrom(1, 0, {1, 1, 1, 1}, 1);  // says it holds samples 3 and 4
  Deliver();
  CHECK(abort->cause() ==
        "edge e source 1, microbatch 0 (step 2 mb 0): expected sample 2 at place 0, got sample 3");
  REQUIRE(outboxes[1]->errors.size() == 1);
}

TEST_CASE_METHOD(LeaderFixture, "gradients go back to the stage in the order of the microbatches",
                 "[actors][leader]") {
  OpenSource(2);
  const auto first = Activate(0);
  const auto second = Activate(1);
  CHECK(ValuesOf(peers[1]->Received<Slice>()[1].buffer) == std::vector<double>{12, 13});
  GiveSlice(0, 0, {-1, -2});
  GiveSlice(0, 1, {-11, -12});
  GiveSlice(1, 1, {-13, -14}, 1);  // that of microbatch 0 is on its way
  CHECK(second->pending());
  GiveSlice(1, 0, {-3, -4});
  CHECK(ValuesOf(first->answers.at(0).shards) ==
        std::vector<std::vector<double>>{{-1, -2, -3, -4}});
  CHECK(second->answers.size() == 1);
}

TEST_CASE_METHOD(LeaderFixture, "a slice that is refused fails every activation at the source",
                 "[actors][leader]") {
  OpenSource(1);
  const auto under_way = Activate(0);
  const auto waiting = Activate(1);  // for the credit
  CHECK(peers[0]->Count<Slice>() == 1);
  Refuse<Slice>(*peers[1], "language.s0: no memory");
  const std::vector<std::string> expected = {"language.s0: no memory"};
  CHECK(under_way->errors == expected);
  CHECK(waiting->errors == expected);
  CHECK(abort->cause() == expected[0]);
}

TEST_CASE_METHOD(LeaderFixture, "a failed stage fails the slices of all its microbatches",
                 "[actors][leader]") {
  OpenDestination();
  const auto left = GiveRows(0, 0, RowsOf({1, 2}));
  const auto right = GiveRows(1, 0, RowsOf({3, 4}));
  const auto incomplete = GiveRows(1, 1, RowsOf({13, 14}));
  CHECK(stage.Oldest<Activation>().link == 7);
  Refuse<Activation>(stage, "language.s0: no memory");
  const std::vector<std::string> expected = {"language.s0: no memory"};
  for (const auto& slice : {left, right, incomplete}) CHECK(slice->errors == expected);
  CHECK(abort->cause() == expected[0]);
}

TEST_CASE_METHOD(LeaderFixture, "a leader that has failed refuses messages and sends none",
                 "[actors][leader]") {
  const std::vector<std::string> expected = {"language.s0: no memory"};
  SECTION("at the source") {
    OpenSource(1);
    Activate(0);
    Refuse<Slice>(*peers[1], expected[0]);
    CHECK(Activate(1)->errors == expected);
    CHECK(peers[0]->Count<Slice>() == 1);
    CHECK(peers[1]->Count<Slice>() == 1);
  }
  SECTION("at the destination") {
    OpenDestination();
    for (const int from : {0, 1}) GiveRows(from, 0, RowsOf({1, 2}));
    Refuse<Activation>(stage, expected[0]);
    for (const int from : {0, 1}) CHECK(GiveRows(from, 1, RowsOf({3, 4}))->errors == expected);
    CHECK(stage.Count<Activation>() == 1);
  }
}

TEST_CASE_METHOD(LeaderFixture, "rows of another process count when their bytes are here",
                 "[actors][leader]") {
  FarTensors far(tensors);
  SECTION("on the way there") {
    OpenDestination();
    GiveRows(0, 0, far.Name({1, 2}));
    GiveRows(1, 0, RowsOf({3, 4}));
    CHECK(far.Open() == std::vector<std::string>{"edge e, microbatch 0 (step 2 mb 0)"});
    CHECK(stage.Count<Activation>() == 0);
    far.Arrive();
    Deliver();
    CHECK(ValuesOf(stage.Oldest<Activation>().shards) ==
          std::vector<std::vector<double>>{{1, 2, 3, 4}});
  }
  SECTION("on the way back") {
    OpenSource(1);
    const auto asked = Activate(0);
    Give<Slice>(*peers[0], GradientSlice{0, far.Name({-1, -2})});
    GiveSlice(1, 0, {-3, -4});
    CHECK(far.Open() == std::vector<std::string>{"edge e, gradient of microbatch 0 (step 2 mb 0)"});
    CHECK(asked->pending());
    far.Arrive();
    Deliver();
    CHECK(ValuesOf(asked->answers.at(0).shards) ==
          std::vector<std::vector<double>>{{-1, -2, -3, -4}});
  }
}

}  // namespace troupe
