#include "trace/analyze/link_time.hpp"

#include <catch2/catch.hpp>

namespace troupe {
namespace {

enum Actor { kFast, kSlow, kFastSource, kSlowSource, kDestination, kLanguage, kNext, kReplica };
enum Type { kActivation, kSlice };

/// Two encoders before a language model of two stages; the second encoder's leader has the same
/// destination's name at the other end of its own edge.
RunTrace Empty() {
  RunTrace trace;
  trace.types = {"Activation", "Slice"};
  trace.stages = {{"fast", 0}, {"slow", 0}, {"language", 0}, {"language", 1}};
  trace.links = {{"fast>language", 0, 2, true},
                 {"slow>language", 1, 2, true},
                 {"language.s0>s1", 2, 3, false}};
  const auto stage = [&](int number) {
    return MakeTraceActor({.kind = ActorKind::kStage,
                           .stage = number,
                           .replica = 0,
                           .of = ToString(trace.stages[static_cast<std::size_t>(number)])});
  };
  const auto leader = [&](int link, EdgeEnd end, int replica) {
    return MakeTraceActor({.kind = ActorKind::kLeader,
                           .end = end,
                           .replica = replica,
                           .link = link,
                           .of = trace.links[static_cast<std::size_t>(link)].name});
  };
  trace.actors = {stage(0),
                  stage(1),
                  leader(0, EdgeEnd::kSource, 0),
                  leader(1, EdgeEnd::kSource, 0),
                  leader(0, EdgeEnd::kDestination, 0),
                  stage(2),
                  stage(3),
                  leader(0, EdgeEnd::kSource, 1)};
  return trace;
}

void Add(RunTrace& trace, int link, Type type, Actor sender, Actor receiver, std::int64_t unit,
         std::int64_t sent_ns, std::int64_t begin_ns) {
  TraceMessage m;
  m.link = link;
  m.type = type;
  m.role = MessageRole::kActivation;
  m.sender = sender;
  m.receiver = receiver;
  m.unit = unit;
  m.sent_ns = m.arrived_ns = sent_ns;
  m.begin_ns = begin_ns;
  m.end_ns = begin_ns + 1;
  trace.messages.push_back(m);
}

}  // namespace

TEST_CASE("a hop takes as long as its activations are on their way", "[trace]") {
  RunTrace trace = Empty();
  Add(trace, 2, kActivation, kLanguage, kNext, 0, 100, 110);
  Add(trace, 2, kActivation, kLanguage, kNext, 1, 200, 230);
  Add(trace, 2, kActivation, kLanguage, kNext, 2, 300, 370);
  CHECK(LinkTime(trace, {"language", 0}, {"language", 1}) == 30);
  CHECK_FALSE(LinkTime(trace, {"language", 1}, {"language", 0}));
  CHECK_FALSE(LinkTime(Empty(), {"language", 0}, {"language", 1}));
}

TEST_CASE("a boundary takes no longer for waits for credits, slow replicas or other edges",
          "[trace]") {
  RunTrace trace = Empty();
  // To the leader 5; then 1,000 until there is a credit; from the last slice 20 until it is there.
  Add(trace, 0, kActivation, kFast, kFastSource, 7, 100, 105);
  Add(trace, 0, kSlice, kFastSource, kDestination, 7, 1105, 1110);
  Add(trace, 0, kSlice, kReplica, kDestination, 7, 5000, 5010);
  Add(trace, 0, kActivation, kDestination, kLanguage, 7, 5012, 5020);
  // The other edge's activation comes much later.
  Add(trace, 1, kActivation, kSlow, kSlowSource, 7, 90'000, 90'003);
  Add(trace, 1, kSlice, kSlowSource, kDestination, 7, 90'004, 90'010);
  Add(trace, 1, kActivation, kDestination, kLanguage, 7, 90'011, 90'015);
  CHECK(LinkTime(trace, {"fast", 0}, {"language", 0}) == 25);
  CHECK(LinkTime(trace, {"slow", 0}, {"language", 0}) == 14);
}

}  // namespace troupe
