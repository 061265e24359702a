// Processes that wait to take a lost one's place.
#include "cluster/spare.hpp"

#include <future>

#include <catch2/catch.hpp>

#include "cluster/latecomers.hpp"
#include "tests/cluster/meeting.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using testing::Again;
using testing::Meeting;
using testing::Outcome;

namespace {

void Lasting(JoinOptions& options) { options.lasting = true; }

/// What a spare has got: a place, or why not.
struct Fate {
  std::optional<TakePlace> place;
  std::string error;
  JoinFault fault = JoinFault::kOther;
};

std::future<Fate> StartSpare(const Meeting& meeting, std::chrono::milliseconds patience = 20s,
                             const std::string& config = "") {
  JoinOptions options = meeting.Options(kSpareProcess);
  options.self.name = "the spare";
  options.self.pid = 300;
  options.timeout = patience;
  if (!config.empty()) options.self.config = config;
  return std::async(std::launch::async, [options, key = meeting.key()]() -> Fate {
    try {
      return {.place = AwaitPlace(key, options), .error = ""};
    } catch (const JoinError& error) {
      return {.place = std::nullopt, .error = error.what(), .fault = error.fault};
    }
  });
}

void AwaitSaid(const Meeting& meeting, const std::string& part) {
  const Deadline deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const std::string& line : meeting.said()) {
      if (line.find(part) != std::string::npos) return;
    }
    std::this_thread::sleep_for(5ms);
  }
  FAIL(part + " was not said");
}

}  // namespace

TEST_CASE("a spare takes the place of a process that does not come back") {
  Meeting meeting(3);
  meeting.Start(0, Lasting);
  auto spare = StartSpare(meeting);  // before the job has met
  meeting.Start(1, Lasting);
  meeting.Start(2, Lasting);
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error == "");
  AwaitSaid(meeting, "n0: a spare has come from 127.0.0.1 (pid 300)");
  outcomes.clear();  // process 1 is lost
  const auto seed = meeting.seed();
  Meeting next(3);
  const auto there = [seed](JoinOptions& options) {
    Again(options);
    options.seed = seed;
  };
  next.Start(2, there, meeting.key());
  next.Start(0, there, meeting.key());
  const Fate fate = spare.get();
  REQUIRE(fate.place);
  CHECK(fate.place->process == 1);
  CHECK(fate.place->generation == 1);
  next.Start(
      1,
      [&](JoinOptions& options) {
        there(options);
        options.self.pid = 300;
      },
      meeting.key());
  for (const Outcome& outcome : next.Finish()) {
    CHECK(outcome.error == "");
    CHECK(outcome.joined->roster.members.at(1).pid == 300);
  }
  AwaitSaid(next, "n0: the spare at 127.0.0.1 (pid 300) takes the place of n1");
}

TEST_CASE("a process that is started again at once keeps its place, and the spare waits") {
  Meeting meeting(2);
  meeting.Start(0, Again);
  auto spare = StartSpare(meeting, 1s);
  std::this_thread::sleep_for(500ms);
  meeting.Start(1, Again);
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error == "");
  AwaitSaid(meeting, "n0: a spare has come");
  CHECK(meeting.said().size() == 1);
  outcomes.front().joined->latecomers->Close(DoneProblem());
  const Fate fate = spare.get();
  CHECK_FALSE(fate.place);
  CHECK(fate.error == "the job is done");
  CHECK(fate.fault == JoinFault::kDone);
}

TEST_CASE("a spare does not end with a process 0 that does not fit the job") {
  Meeting meeting(2);
  meeting.Start(0, [](JoinOptions& options) {
    Lasting(options);
    options.begins_anew = true;
  });
  auto spare = StartSpare(meeting, 2s);
  std::this_thread::sleep_for(300ms);
  meeting.Start(1, Again);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.fault == JoinFault::kWrongFirst);
  CHECK(spare.get().fault == JoinFault::kUnreachable);  // it has looked for another
}

TEST_CASE("of a spare and the process whose place it takes, the one that comes later is refused") {
  Meeting meeting(3);
  meeting.Start(0, Again);
  meeting.Start(1, Again);
  std::this_thread::sleep_for(200ms);
  const auto late = meeting.Start(1, [](JoinOptions& options) {
    Again(options);
    options.self.pid = 7;
  });
  std::this_thread::sleep_for(200ms);
  meeting.Start(2, Again);
  const auto& outcomes = meeting.Finish();
  CHECK(outcomes[late].error ==
        "n1 has already joined (127.0.0.1, pid 101): two processes were started as n1");
  CHECK(outcomes[late].fault == JoinFault::kTaken);
  CHECK(outcomes[0].error == "");
  CHECK(outcomes[0].joined->roster.members.at(1).pid == 101);
}

TEST_CASE("a spare of another configuration is refused, and the job meets without it") {
  for (const bool met : {false, true}) {
    Meeting meeting(2);
    meeting.Start(0, Lasting);
    std::future<Fate> spare;
    const auto start_spare = [&] { spare = StartSpare(meeting, 20s, "a = 2\nb = 2\n"); };
    if (!met) start_spare();
    if (!met) CHECK(spare.wait_for(5s) == std::future_status::ready);
    meeting.Start(1, Lasting);
    const auto& outcomes = meeting.Finish();
    for (const Outcome& outcome : outcomes) CHECK(outcome.error == "");
    if (met) start_spare();
    CHECK(spare.get().error ==
          "the configuration of the spare (127.0.0.1) differs from that of n0: a is 2, n0 has 1");
  }
}

TEST_CASE("a job that does not go on after a loss has no use for spares") {
  Meeting meeting(2);
  meeting.Start(0);
  auto spare = StartSpare(meeting);
  CHECK(spare.get().error == "this job does not go on after a loss (--restarts)");
  meeting.Start(1);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
}

TEST_CASE("a spare gives up when process 0 is gone for long, and is dismissed by a job that ends") {
  Meeting meeting(2);
  meeting.Start(0, Lasting);
  meeting.Start(1, Lasting);
  auto& outcomes = meeting.Finish();
  auto spare = StartSpare(meeting, 500ms);
  AwaitSaid(meeting, "n0: a spare has come");
  outcomes.clear();
  const std::string error = spare.get().error;
  CHECK_THAT(error, Catch::StartsWith("cannot reach 127.0.0.1:"));
  for (const JoinFault fault : {JoinFault::kEnded, JoinFault::kDone}) {
    Meeting ended(2);
    ended.Start(0, [fault](JoinOptions& options) {
      Again(options);
      options.refusal = {"nothing is left", fault};
    });
    auto dismissed = StartSpare(ended);
    CHECK(dismissed.get().fault == fault);
    CHECK(ended.Finish().front().fault == fault);
  }
}

TEST_CASE("a process that does not know that the job is done learns it from process 0") {
  Meeting meeting(3);
  for (const ProcessId process : {0, 1, 2}) meeting.Start(process, Lasting);
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error == "");
  Latecomers& latecomers = *outcomes.front().joined->latecomers;
  auto told = std::async(std::launch::async, [&] { latecomers.TellDone(1, 20s); });
  Meeting late(3);
  late.Start(
      2,
      [&](JoinOptions& options) {
        Again(options);
        options.seed = meeting.seed();
      },
      meeting.key());
  const Outcome& outcome = late.Finish().front();
  CHECK(outcome.error == "the job is done");
  CHECK(outcome.fault == JoinFault::kDone);
  CHECK(told.wait_for(10s) == std::future_status::ready);  // TellDone may wait for 20 s
  const auto began = std::chrono::steady_clock::now();
  latecomers.TellDone(2, 300ms);
  CHECK(std::chrono::steady_clock::now() - began >= 300ms);
}
