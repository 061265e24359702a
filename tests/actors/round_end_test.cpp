// The end of a round: the step of the parameters waits for every norm once, and for no answer
// twice.
#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "tests/actors/job_fixture.hpp"

namespace troupe {
namespace {

Config ThreeModules() {
  Layout two;
  two.pp = 2;
  Config config = SyntheticConfigOf({{"vision", Layout()}, {"audio", Layout()}, {"language", two}},
                                    {{"vision", "language"}, {"audio", "language"}});
  config.optimizer.clip_norm = 1e-3;
  return config;
}

/// Whether the Update that answered last in `round` received the norms of the others before that.
bool LastWasToldBefore(const RunTrace& trace, std::int64_t round) {
  std::int64_t last_norm_ns = -1;
  int last = -1;
  for (const TraceMessage& m : trace.messages) {
    if (trace.types[static_cast<std::size_t>(m.type)] != "SquaredNorm" || m.round != round)
      continue;
    if (m.begin_ns > last_norm_ns) last = m.sender;
    last_norm_ns = std::max(last_norm_ns, m.begin_ns);
  }
  for (const TraceMessage& m : trace.messages) {
    if (trace.types[static_cast<std::size_t>(m.type)] == "ApplyUpdate" && m.round == round &&
        m.receiver == last)
      return m.sent_ns < last_norm_ns;
  }
  return false;
}

}  // namespace

TEST_CASE_METHOD(JobFixture,
                 "the last update of a round has the norms of the others before its own",
                 "[actors]") {
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 4U}) {
    INFO("seed " << seed);
    REQUIRE(RunShuffled(ThreeModules(), TrainingRounds(3, 2), seed).failure.empty());
    for (const std::int64_t round : {0, 1, 2}) CHECK(LastWasToldBefore(Trace(), round));
  }
}

TEST_CASE_METHOD(JobFixture, "every update clips by the norm that the Director reports",
                 "[actors]") {
  // With `inspect` no norm is sent before all have answered: the parameters must be the same bits.
  REQUIRE(Run(ThreeModules(), TrainingRounds(3, 2)).failure.empty());
  const auto early = seen->parameters;
  REQUIRE(seen->rounds.back().clip_coefficient < 1.0);
  inspect = true;
  REQUIRE(Run(ThreeModules(), TrainingRounds(3, 2)).failure.empty());
  CHECK(seen->parameters == early);
  CHECK(early.size() == 4);
}

TEST_CASE_METHOD(JobFixture, "a job with one update asks for no norm", "[actors]") {
  Config config = SyntheticConfigOf({{"language", Layout()}}, {});
  config.optimizer.clip_norm = 1e-3;
  REQUIRE(Run(config, TrainingRounds(4, 2)).failure.empty());
  CHECK(seen->rounds.size() == 4);
  CHECK(LastWasToldBefore(Trace(), 3));
}

}  // namespace troupe
