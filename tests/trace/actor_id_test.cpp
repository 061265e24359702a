// Who an actor is, as a trace file holds it and as people read it.
#include "trace/actor_id.hpp"

#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "trace/recorder.hpp"

namespace troupe {
namespace {

/// One of each kind, all numbers different, with its name.
const std::vector<std::pair<ActorId, std::string>> kNamed = {
    {DirectorActor(), "director"},
    {{.kind = ActorKind::kNode, .of = "n1"}, "node n1"},
    {{.kind = ActorKind::kStage, .stage = 3, .replica = 2, .of = "language.s1"},
     "stage language.s1 dp2"},
    {{.kind = ActorKind::kLeader,
      .end = EdgeEnd::kSource,
      .replica = 4,
      .link = 7,
      .of = "vision>language"},
     "leader vision>language/source.4"},
    {{.kind = ActorKind::kLeader,
      .end = EdgeEnd::kDestination,
      .replica = 5,
      .link = 6,
      .of = "vision>language"},
     "leader vision>language/destination.5"},
    {{.kind = ActorKind::kPhase, .link = 1, .of = "vision>language"}, "phase vision>language"},
    {{.kind = ActorKind::kFeed, .stage = 1, .replica = 3, .of = "vision"}, "feed of vision dp3"},
    {{.kind = ActorKind::kUpdate, .stage = 2, .of = "language.s0"}, "update of language.s0"},
    {LockStepActor(8), "lock step 8"},
    {{.kind = ActorKind::kLockStep, .stage = 0, .replica = 1, .of = "vision.s0"},
     "lock step of vision.s0 dp1"},
    {DeviceActor(12), "device 12"},
    {{.kind = ActorKind::kDispatcher, .of = "n1"}, "dispatcher of n1"},
    {{.kind = ActorKind::kDataWorker, .set = 3, .of = "n1"}, "data worker 3 of n1"},
    {{.kind = ActorKind::kMachineLink, .of = "f1 of n1"}, "feed machine f1 of n1"},
    {{.of = "somebody else"}, "somebody else"}};

}  // namespace

TEST_CASE("every kind of actor has its name, and comes back from a line as it was", "[trace]") {
  std::vector<bool> seen(kNumActorKinds);
  for (const auto& [id, name] : kNamed) {
    CHECK(ToString(id) == name);
    CHECK(DecodeActor(EncodeActor(id)) == id);
    seen[static_cast<std::size_t>(id.kind)] = true;
  }
  CHECK(seen == std::vector<bool>(kNumActorKinds, true));
  CHECK(EncodeActor(kNamed[3].first) == "4 1 -1 4 -1 -1 7 vision>language");
  CHECK(EncodeActor(DirectorActor()) == "1 0 -1 -1 -1 -1 -1 ");
}

TEST_CASE("a text that looks like numbers stays a text", "[trace]") {
  const ActorId id{.kind = ActorKind::kFeed, .replica = 0, .of = "3 4 the module"};
  CHECK(DecodeActor(EncodeActor(id)) == id);
  const StageId stage{"7 of 9", 2};
  CHECK(EncodeStage(stage) == "2 7 of 9");
  CHECK(DecodeStage(EncodeStage(stage)) == stage);
}

TEST_CASE("a foreign line gives an actor of which less is known, and its text", "[trace]") {
  const auto other = [](const std::string& text) { return ActorId{.of = text}; };
  for (const char* line : {"", " ", "stage vision.s0 dp0", "3", "3 0 1 2 -1 -1 -1",
                           "3 0 1 2 -1 -1 vision.s0", "3 0 1 two -1 -1 -1 vision.s0",
                           "3  0 1 2 -1 -1 -1 vision.s0", "+3 0 1 2 -1 -1 -1 vision.s0"}) {
    CHECK(DecodeActor(line) == other(line));
  }
  // A kind or an end that is not known, and numbers that nothing has.
  CHECK(DecodeActor("13 0 -1 -1 -1 -1 -1 the name") == other("the name"));
  CHECK(DecodeActor("-1 0 -1 -1 -1 -1 -1 the name") == other("the name"));
  CHECK(DecodeActor("99999999999999999999 3 1048576 -2 2147483648 -9223372036854775809 1e9 x") ==
        other("99999999999999999999 3 1048576 -2 2147483648 -9223372036854775809 1e9 x"));
  CHECK(DecodeActor("99999999999999999999 3 1048576 -2 2147483648 -9223372036854775809 -7 x") ==
        other("x"));
  CHECK(DecodeActor("9 0 -1 -1 1048575 -1 -1 ") == DeviceActor(1048575));
  CHECK(DecodeStage("") == StageId{"", -1});
  CHECK(DecodeStage("vision.s0") == StageId{"vision.s0", -1});
  CHECK(DecodeStage("-4 vision") == StageId{"vision", -1});
}

TEST_CASE("actors and stages of a trace are those that were noted", "[trace]") {
  RecorderOptions options;
  options.stages = {{"vision", 0}, {"language", 0}, {"language", 1}};
  options.types = {"error"};
  options.capacity = 4;
  Recorder recorder(options);
  ActorNumber number = 1;
  for (const auto& [id, name] : kNamed) recorder.NameActor(number++, id);
  const RunTrace trace = MergeTraces({recorder.Snapshot()}, "run");
  CHECK(trace.stages == options.stages);
  REQUIRE(trace.actors.size() == kNamed.size());
  for (std::size_t i = 0; i < kNamed.size(); ++i) {
    CHECK(trace.actors[i].id == kNamed[i].first);
    CHECK(trace.actors[i].name == kNamed[i].second);
  }
}

}  // namespace troupe
