// What a colocated encoder keeps is away while the language model computes, and never when the
// encoder needs it.
#include <limits>
#include <map>

#include <catch2/catch.hpp>

#include "kinds/synthetic.hpp"
#include "tests/actors/offload_fixture.hpp"

namespace troupe {
namespace {

struct Offloaded {
  std::shared_ptr<OffloadLog> log = std::make_shared<OffloadLog>();
  ThreadedJob job;
  std::string failure;

  explicit Offloaded(const Config& config, const RoundPlan& rounds, MoveFault fault = {},
                     int most_us = 300) {
    job.wrap_program = Offloading(log, std::move(fault), most_us);
    job.inspect = true;
    failure = job.Run(config, rounds).failure.text;
  }
};

/// Where in the log something first and last happened, and how often.
struct Times {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;
  std::int64_t count = 0;
  void Add(std::size_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
    ++count;
  }
};

/// Of one window of the encoder, over all its shards: "F", "offload", ...
std::map<std::string, Times> WindowOf(const OffloadLog& log, std::int64_t window) {
  std::map<std::string, Times> times;
  std::map<std::pair<int, std::string>, std::int64_t> moves;  // by rank: those before
  for (std::size_t i = 0; i < log.events().size(); ++i) {
    const auto& event = log.events()[i];
    if (event.module != "vision") continue;
    const bool pass = event.what == "F" || event.what == "B";
    const std::int64_t unit = pass ? event.unit : moves[{event.rank, event.what}]++;
    if (unit == window) times[event.what].Add(i);
  }
  return times;
}

/// Where in the log the rank began to offload for the window.
std::size_t FirstOffload(const OffloadLog& log, int rank, std::size_t window) {
  for (std::size_t i = 0; i < log.events().size(); ++i) {
    const auto& event = log.events()[i];
    if (event.rank == rank && event.what == "offload" && window-- == 0) return i;
  }
  return log.events().size();
}

/// In every window: all of the encoder's forwards, then all that leaves, then all that returns,
/// once the language model owes `ahead` gradients per replica or fewer, then the first backward.
void CheckWindows(const OffloadLog& log, const Config& config, std::int64_t ahead,
                  const std::vector<std::int64_t>& windows) {
  const std::int64_t shards = config.modules[0].layout.num_ranks();
  const std::int64_t replicas = config.modules[1].layout.dp;
  std::int64_t first = 0;  // microbatch of the window
  for (std::size_t w = 0; w < windows.size(); ++w) {
    INFO("window " << w);
    auto own = WindowOf(log, static_cast<std::int64_t>(w));
    for (const char* what : {"F", "offload", "away", "restore", "here", "B"}) {
      CHECK(own[what].count == shards);
    }
    CHECK(own["F"].last < own["offload"].first);
    CHECK(own["away"].last < own["restore"].first);
    CHECK(own["here"].last < own["B"].first);
    std::int64_t gradients = 0;
    const std::int64_t end = first + windows[w];
    for (std::size_t i = 0; i < log.events().size(); ++i) {
      const auto& event = log.events()[i];
      if (event.module != "language" || event.unit < first || event.unit >= end) continue;
      CHECK(i > own["F"].last);
      if (event.pp == 0 && event.what == "B" && i < own["restore"].first) ++gradients;
      if (event.what == "F" && event.unit == first) CHECK(i > FirstOffload(log, event.rank, w));
    }
    const int tensor = config.modules[1].layout.tp;  // all of a replica log the same
    CHECK(gradients >=
          tensor * (replicas * windows[w] - std::min(ahead, windows[w] - 1) * replicas));
    first = end;
  }
  CHECK(log.Count("B", "vision", 0) * config.modules[0].layout.pp ==
        shards * static_cast<std::int64_t>(windows.size()));
}

}  // namespace

TEST_CASE("an encoder's state is away between its forward and its backward", "[actors][threads]") {
  Config config = OffloadingConfig(LayoutOf(1, 1, 2), LayoutOf(1, 2, 1));
  config.schedule.micro_batch_size = 2;
  config.schedule.window = 3;
  const Offloaded run(config, TrainingRounds(2, 8));  // windows of 3, 3 and 2 microbatches
  REQUIRE(run.failure == "");
  for (const int rank : {0, 1}) {
    // The moments come back for the update, at the end of a round only.
    const auto window = [](int unit, const char* restore) {
      const std::string n = std::to_string(unit);
      return "F" + n + " offload away " + restore + " here B" + n;
    };
    CHECK(run.log->Story("vision", rank) ==
          window(0, "restore") + " " + window(1, "restore") + " " + window(2, "restore+") + " " +
              window(3, "restore") + " " + window(4, "restore") + " " + window(5, "restore+"));
  }
  CheckWindows(*run.log, config, 1, {3, 3, 2, 3, 3, 2});
}

TEST_CASE("every layout of an encoder offloads as one, in the language model's cool-down",
          "[actors][threads]") {
  struct Case {
    Layout vision, language;
    std::int64_t ahead;  ///< that follows from the language model's pipeline
  };
  const auto [vision, language, ahead] =
      GENERATE(Case{LayoutOf(1, 2, 2), LayoutOf(1, 4, 1), 2},   // a pipeline of encoder stages
               Case{LayoutOf(1, 1, 6), LayoutOf(1, 2, 3), 1},   // replicas 6 to 3
               Case{LayoutOf(2, 1, 3), LayoutOf(3, 1, 2), 0},   // replicas 3 to 2
               Case{LayoutOf(4, 1, 1), LayoutOf(1, 4, 1), 2},   // tensor parallel
               Case{LayoutOf(1, 4, 1), LayoutOf(2, 1, 2), 0});  // four stages on the ranks of one
  Config config = OffloadingConfig(vision, language);
  config.schedule.micro_batch_size = 3;
  const Offloaded run(config, TrainingRounds(3, 6));
  REQUIRE(run.failure == "");
  CheckWindows(*run.log, config, ahead, {6, 6, 6});
}

TEST_CASE("offloading changes no gradient", "[actors][threads]") {
  const auto gradients = [](Offload what) {
    Config config = OffloadingConfig(LayoutOf(1, 2, 2), LayoutOf(2, 2, 1));
    config.modules[0].offload = what;
    config.modules[0].As<SyntheticConfig>().rows_per_sample = 3;
    config.schedule.micro_batch_size = 4;
    config.schedule.window = 2;
    const Offloaded run(config, TrainingRounds(2, 5));
    REQUIRE(run.failure == "");
    CHECK(run.log->Count("offload", "vision", 0) == (what == Offload::kNone ? 0 : 2 * 2 * 3));
    std::multimap<std::string, double> sorted;
    for (const auto& [name, value] : run.job.seen->gradients) sorted.emplace(name, value);
    return sorted;
  };
  const auto with = gradients(Offload::kState);
  CHECK(with.size() == 2 * 8);
  CHECK(with == gradients(Offload::kNone));
}

TEST_CASE("in an evaluation nothing leaves", "[actors][threads]") {
  Config config = OffloadingConfig(LayoutOf(1, 1, 2), LayoutOf(2, 1, 1));
  config.schedule.micro_batch_size = 2;
  const RoundPlan rounds = [](std::int64_t number) -> std::optional<Round> {
    if (number == 4) return std::nullopt;
    return Round{number, number % 2 == 1, number / 2, 3, 1.0};
  };
  const Offloaded run(config, rounds);
  REQUIRE(run.failure == "");
  CHECK(run.log->Story("vision", 0) ==
        "F0 F1 offload away restore+ here B1 F2 F3 offload away restore+ here B3");
}

TEST_CASE("an encoder that does not train offloads too, and is back for its next forward",
          "[actors][threads]") {
  Config config = OffloadingConfig(LayoutOf(1, 1, 2), LayoutOf(1, 2, 1));
  config.modules[0].frozen = true;
  config.schedule.micro_batch_size = 2;
  config.schedule.window = 2;
  const Offloaded run(config, TrainingRounds(2, 4));
  REQUIRE(run.failure == "");
  CHECK(run.log->Story("vision", 1) ==
        "F0 offload away restore here F1 offload away restore+ here "
        "F2 offload away restore here F3 offload away restore+ here");
}

TEST_CASE("two encoders on the same ranks offload each on its own", "[actors][threads]") {
  Config config = SyntheticConfigOf({{"vision", LayoutOf(1, 1, 2)},
                                     {"detail", LayoutOf(2, 1, 1)},
                                     {"language", LayoutOf(1, 2, 1)}},
                                    {{"vision", "language"}, {"detail", "language"}});
  for (ModuleConfig& module : config.modules) module.ranks = {0, 1};
  config.cluster.ranks = 2;
  config.schedule.micro_batch_size = 2;
  config.modules[0].offload = Offload::kParameters;
  config.modules[1].offload = Offload::kState;
  const Offloaded run(config, TrainingRounds(2, 4));
  REQUIRE(run.failure == "");
  for (const char* encoder : {"vision", "detail"}) {
    CHECK(run.log->Story(encoder, 1) ==
          "F0 offload away restore+ here B0 F1 offload away restore+ here B1");
  }
}

TEST_CASE("a move that fails on one rank ends the job with its cause", "[actors][threads]") {
  const bool restore = GENERATE(false, true);
  const bool throws = GENERATE(false, true);
  Config config = OffloadingConfig(LayoutOf(1, 2, 2), LayoutOf(1, 4, 1));
  config.schedule.micro_batch_size = 2;
  const Offloaded run(config, TrainingRounds(3, 4), {"vision", 3, restore, throws});
  CHECK(run.failure == std::string("vision.s1 dp1 rank 3 ") + (restore ? "restore" : "offload") +
                           " of window 0: " + (throws ? "no room" : "the copy broke"));
}

TEST_CASE("40 jobs with copies of any length never run an encoder without its state",
          "[actors][threads][slow]") {
  for (int i = 0; i < 40; ++i) {
    Config config = OffloadingConfig(LayoutOf(1, 2, 2), LayoutOf(2, 2, 1));
    config.schedule.micro_batch_size = 2;
    config.schedule.window = 1 + i % 3;
    config.modules[0].offload_ahead = i % 4;
    const Offloaded run(config, TrainingRounds(3, 5), {}, 1 << (i % 12));
    if (!run.failure.empty()) FAIL(run.failure);
  }
  SUCCEED();
}

}  // namespace troupe
