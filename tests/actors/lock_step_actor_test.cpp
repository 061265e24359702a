// The lock step alone: the test plays the actors that command devices, and the devices.
#include "actors/lock_step_actor.hpp"

#include <map>

#include <catch2/catch.hpp>

#include "tests/actors/probes.hpp"

namespace troupe {
namespace {

/// A lock step over ranks 3, 5 and 7.
class LockStepFixture : public ActorFixture {
 public:
  void Open(const std::map<int, LockStepOrder>& orders = {},
            const std::map<std::pair<int, int>, LockStepReplicas>& replicas = {}) {
    LockStepConfig config;
    for (const int rank : {3, 5, 7}) {
      Probe& probe = AddProbe("device " + std::to_string(rank));
      devices[rank] = &probe;
      config.devices[rank] = probe.As<Device>();
    }
    config.orders = orders;
    config.replicas = replicas;
    lock_step = Spawn(RunLockStep, std::move(config));
  }
  auto Forward(int stage, std::int64_t unit, const std::vector<int>& ranks, bool train = true) {
    ToSet<RunForward> set;
    for (const int rank : ranks)
      set.parts.push_back({rank, {stage, 0, {unit, train, 1.0, {}, {}}}});
    return Ask<FromSet<ForwardDone>>(lock_step, set);
  }
  auto Backward(int stage, std::int64_t unit, const std::vector<int>& ranks) {
    ToSet<RunBackward> set;
    for (const int rank : ranks) set.parts.push_back({rank, {stage, 0, {unit, {}, false}}});
    return Ask<FromSet<BackwardDone>>(lock_step, set);
  }
  auto Reduce(int stage, std::int64_t round, const std::vector<int>& ranks) {
    ToSet<ReduceGradients> set;
    for (const int rank : ranks) set.parts.push_back({rank, {stage, round}});
    return Ask<FromSet<GradientsReduced>>(lock_step, set);
  }

  std::map<int, Probe*> devices;
  LockStep lock_step;
};

/// Two stages of rank 3, of which each round runs F F B B in turn, as an order names them.
std::map<int, LockStepOrder> OrderOfTwoStages() {
  LockStepOrder order;
  order.order = {{1, {PassKind::kForward, 0}},
                 {4, {PassKind::kForward, 0}},
                 {4, {PassKind::kBackward, 0}},
                 {1, {PassKind::kBackward, 0}}};
  order.stages[1] = {.kind = ActorKind::kStage, .stage = 1, .replica = 0, .of = "language.s1"};
  order.stages[4] = {.kind = ActorKind::kStage, .stage = 4, .replica = 0, .of = "language.s4"};
  return {{3, order}};
}

}  // namespace

TEST_CASE_METHOD(LockStepFixture,
                 "a lock step sends each set to all of its devices before the next set",
                 "[actors][lock_step]") {
  Open();
  Forward(0, 10, {3, 5, 7});
  Reduce(1, 2, {5, 3});
  Forward(0, 11, {7, 3});
  // No device has answered yet: none of this waits.
  CHECK(TakeLog() == ProbeLog{"device 3: RunForward 10", "device 5: RunForward 10",
                              "device 7: RunForward 10", "device 5: ReduceGradients",
                              "device 3: ReduceGradients", "device 7: RunForward 11",
                              "device 3: RunForward 11"});
}

TEST_CASE_METHOD(LockStepFixture,
                 "a set is answered when its last device answers, in the order of its parts",
                 "[actors][lock_step]") {
  Open();
  const auto answered = Reduce(0, 4, {5, 3, 7});
  Give<ReduceGradients>(*devices[7], GradientsReduced{70, {0.7, {}}});
  Give<ReduceGradients>(*devices[5], GradientsReduced{50, {0.5, {}}});
  CHECK(answered->pending());
  Give<ReduceGradients>(*devices[3], GradientsReduced{30, {0.3, {}}});
  REQUIRE(answered->answers.size() == 1);
  std::vector<std::pair<std::int64_t, double>> parts;
  for (const GradientsReduced& part : answered->answers[0].parts) {
    parts.emplace_back(part.busy_ns, part.result.squared_norm);
  }
  CHECK(parts == std::vector<std::pair<std::int64_t, double>>{{50, 0.5}, {30, 0.3}, {70, 0.7}});
}

TEST_CASE_METHOD(LockStepFixture, "the first error of a set is its only answer",
                 "[actors][lock_step]") {
  Open();
  const auto answered = Forward(0, 0, {3, 5, 7});
  Refuse<RunForward>(*devices[5], "rank 5 is out of memory");
  CHECK(answered->errors == std::vector<std::string>{"rank 5 is out of memory"});
  Refuse<RunForward>(*devices[3], "rank 3 heard of it");
  Give<RunForward>(*devices[7], ForwardDone{});
  CHECK(answered->errors.size() == 1);
  CHECK(answered->answers.empty());
  // Other sets go on.
  const auto next = Reduce(0, 0, {3});
  Give<ReduceGradients>(*devices[3], GradientsReduced{});
  CHECK(next->answers.size() == 1);
}

TEST_CASE_METHOD(LockStepFixture, "a set without parts is answered at once",
                 "[actors][lock_step]") {
  Open();
  CHECK(Reduce(0, 0, {})->answers.size() == 1);
  CHECK(TakeLog().empty());
}

/// Ranks 3 and 7 are the first ones of two replicas of stage 2 that share experts.
std::map<std::pair<int, int>, LockStepReplicas> TwoReplicas() {
  const auto stage = [](int replica) {
    return ActorId{.kind = ActorKind::kStage, .stage = 2, .replica = replica, .of = "language.s2"};
  };
  const LockStepReplicas both{{3, 7}, {stage(0), stage(1)}};
  return {{{2, 3}, both}, {{2, 7}, both}};
}

TEST_CASE_METHOD(LockStepFixture,
                 "replicas that share experts run a pass when all of them have come to it",
                 "[actors][lock_step]") {
  Open({}, TwoReplicas());
  Forward(2, 8, {3, 5});
  Reduce(1, 0, {3});  // nothing else waits
  CHECK(TakeLog() == ProbeLog{"device 3: ReduceGradients"});
  Forward(2, 9, {7});  // another pass
  CHECK(TakeLog().empty());
  const auto answered = Forward(2, 8, {7}, /*train=*/true);
  CHECK(TakeLog() ==
        ProbeLog{"device 3: RunForward 8", "device 5: RunForward 8", "device 7: RunForward 8"});
  Give<RunForward>(*devices[7], ForwardDone{});
  CHECK(answered->answers.size() == 1);
  Backward(2, 9, {3, 5});  // not the forward of that unit
  CHECK(TakeLog().empty());
  Forward(2, 9, {3, 5}, /*train=*/false);
  CHECK(TakeLog() ==
        ProbeLog{"device 3: RunForward 9", "device 5: RunForward 9", "device 7: RunForward 9"});
}

TEST_CASE_METHOD(LockStepFixture, "a pass is held back until its turn in the order of its rank",
                 "[actors][lock_step]") {
  Open(OrderOfTwoStages());
  Backward(1, 0, {3});
  Forward(4, 0, {3});
  CHECK(TakeLog().empty());
  Forward(1, 0, {3});
  CHECK(TakeLog() == ProbeLog{"device 3: RunForward 0", "device 3: RunForward 0"});
  CHECK(devices[3]->Received<RunForward>()[0].stage == 1);
  CHECK(devices[3]->Received<RunForward>()[1].stage == 4);
  Backward(4, 0, {3});
  CHECK(TakeLog() == ProbeLog{"device 3: RunBackward 0", "device 3: RunBackward 0"});
  CHECK(devices[3]->Received<RunBackward>()[0].stage == 4);
  CHECK(devices[3]->Received<RunBackward>()[1].stage == 1);
  // The next round begins with stage 1 again.
  Forward(4, 1, {3});
  CHECK(TakeLog().empty());
  Forward(1, 1, {3});
  CHECK(TakeLog() == ProbeLog{"device 3: RunForward 1", "device 3: RunForward 1"});
}

TEST_CASE_METHOD(LockStepFixture, "commands that no order names are never held back",
                 "[actors][lock_step]") {
  Open(OrderOfTwoStages());
  Forward(4, 0, {3}, false);  // of an evaluation
  Forward(2, 5, {3});         // of a colocated encoder
  Reduce(4, 0, {3});
  Backward(4, 8, {5});  // rank 5 has no order
  CHECK(TakeLog() == ProbeLog{"device 3: RunForward 0", "device 3: RunForward 5",
                              "device 3: ReduceGradients", "device 5: RunBackward 8"});
}

}  // namespace troupe
