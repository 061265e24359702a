#include "trace/analyze/chain.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

enum Actor { kDispatcher, kLink, kFeed };

/// A dispatcher asks a feed machine for two samples, the second of which takes longer.
RunTrace Samples() {
  RunTrace trace;
  trace.types = {"PrepareSample", "MachinePrepared", "SamplePrepared"};
  trace.sources = {"a.json", "mix665k.json"};
  trace.actors = {MakeTraceActor({.kind = ActorKind::kDispatcher, .of = "n0"}),
                  MakeTraceActor({.kind = ActorKind::kMachineLink, .of = "f1 of n0"})};
  const auto add = [&](int type, int sender, int receiver, int cause, std::int64_t sent_ns,
                       std::int64_t begin_ns) {
    TraceMessage m;
    m.type = static_cast<std::uint16_t>(type);
    m.sender = sender;
    m.receiver = receiver;
    m.cause = cause;
    m.sent_ns = m.arrived_ns = sent_ns;
    m.begin_ns = begin_ns;
    m.end_ns = begin_ns + 1;
    m.source = 1;
    if (type == 1) m.role = MessageRole::kSampleDecoded;
    trace.messages.push_back(m);
    return static_cast<int>(trace.messages.size()) - 1;
  };
  for (const std::int64_t length : {100, 900}) {
    const std::int64_t begin = trace.messages.empty() ? 0 : 1000;
    const int ask = add(0, kDispatcher, kLink, -1, begin, begin + 10);
    const int made = add(1, -1, kLink, ask, begin + 11 + length, begin + 15 + length);
    add(2, kLink, kDispatcher, made, begin + 16 + length, begin + 20 + length);
  }
  return trace;
}

}  // namespace

TEST_CASE("what a feed machine did for a sample is part of a chain", "[trace]") {
  const RunTrace trace = Samples();
  const TraceIndex index(trace);
  const auto chain = ChainTo(index, 5, 1000, 1921);
  std::vector<std::string> texts;
  for (const Segment& segment : chain) {
    texts.push_back(std::to_string(segment.length_ns()) + " " + index.ActorName(segment.actor) +
                    ": " + Describe(index, segment));
  }
  const auto elsewhere =
      std::ranges::find(chain, SegmentKind::kElsewhere, [](const Segment& s) { return s.kind; });
  REQUIRE(elsewhere != chain.end());
  CHECK(texts[static_cast<std::size_t>(elsewhere - chain.begin())] ==
        "900 feed machine f1 of n0: decode of mix665k.json");
  const Usual usual(index);
  CHECK(usual.Of(*elsewhere) > 0);
  CHECK(usual.Of(*elsewhere) <= 900);
}

}  // namespace troupe
