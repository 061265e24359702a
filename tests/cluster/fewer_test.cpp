// A job that meets again without some of its processes.
#include <algorithm>

#include <catch2/catch.hpp>

#include "cluster/latecomers.hpp"
#include "tests/cluster/meeting.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using testing::Meeting;
using testing::Outcome;

namespace {

using Processes = std::vector<ProcessId>;

/// Options of a job that goes on with fewer processes, if there are two or more.
std::function<void(JoinOptions&)> Elastic(std::chrono::milliseconds patience, Processes away = {}) {
  return [patience, away](JoinOptions& options) {
    options.lasting = true;
    options.self.generation = 1;
    options.tensors = [](const Hello&, const Hello&) { return true; };
    if (options.self.process != 0) return;
    options.patience = patience;
    options.away = away;
    options.why_too_few = [](const Processes& present) -> std::string {
      return present.size() < 2 ? "too few" : "";
    };
  };
}

Processes MembersOf(const Outcome& outcome) {
  Processes members;
  for (const Hello& member : outcome.joined->roster.members) members.push_back(member.process);
  return members;
}

}  // namespace

TEST_CASE("a job meets without a process that does not come, and the others keep their numbers") {
  Meeting meeting(4);
  for (const ProcessId process : {0, 2, 3}) meeting.Start(process, Elastic(2s));
  auto& outcomes = meeting.Finish();
  std::vector<Outcome> by_process(4);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    REQUIRE(outcomes[i].error == "");
    CHECK(MembersOf(outcomes[i]) == Processes{0, 2, 3});
    CHECK(outcomes[i].joined->peers.size() == 2);
    by_process[i == 0 ? 0 : i + 1] = std::move(outcomes[i]);
  }
  by_process[1].joined.emplace();
  CheckMesh(by_process);
}

TEST_CASE("a process that comes too late learns that the job goes on without it") {
  Meeting meeting(3);
  meeting.Start(0, Elastic(2s));
  meeting.Start(2, Elastic(2s));
  auto& outcomes = meeting.Finish();
  REQUIRE(outcomes[0].error == "");
  Meeting late(3);
  late.Start(
      1, [&](JoinOptions& options) { options.seed = meeting.seed(); }, meeting.key());
  const Outcome& outcome = late.Finish().front();
  CHECK(outcome.error == "the job has gone on without n1");
  CHECK(outcome.fault == JoinFault::kTaken);
}

TEST_CASE("too few processes do not go on, and say why") {
  Meeting meeting(3, 1s);
  meeting.Start(0, Elastic(300ms));
  const auto& outcomes = meeting.Finish();
  CHECK_THAT(outcomes[0].error, Catch::StartsWith("n1, n2 did not join within 1 s"));
  CHECK_THAT(outcomes[0].error,
             Catch::EndsWith("; the job cannot go on with fewer processes: too few"));
  CHECK(outcomes[0].fault == JoinFault::kAbsent);
}

TEST_CASE("those that were away before are not waited for long, but others are") {
  const auto began = std::chrono::steady_clock::now();
  Meeting meeting(4, 5s);
  meeting.Start(0, Elastic(60s, {1}));
  for (const ProcessId process : {2, 3}) meeting.Start(process, Elastic(60s));
  for (const Outcome& outcome : meeting.Finish()) {
    REQUIRE(outcome.error == "");
    CHECK(MembersOf(outcome) == Processes{0, 2, 3});
  }
  CHECK(std::chrono::steady_clock::now() - began < 5s);
  Meeting waits(3, 3s);
  waits.Start(0, Elastic(60s, {1}));
  const Outcome& outcome = waits.Finish().front();
  CHECK(outcome.fault == JoinFault::kAbsent);
}

TEST_CASE("a job that begins waits for all its processes") {
  Meeting meeting(3, 1s);
  const auto begins = [](JoinOptions& options) {
    Elastic(100ms)(options);
    options.self.generation = 0;
  };
  meeting.Start(0, begins);
  meeting.Start(2, begins);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.fault == JoinFault::kAbsent);
}
