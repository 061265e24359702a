// `troupe bench schedules`: what it compares, by which numbers, and what it refuses.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "cli/schedule/bench_table.hpp"
#include "cli/schedule/candidate.hpp"
#include "cluster/variables.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;
using Catch::StartsWith;

constexpr const char* kChain = "configs/synthetic_chain.toml";

/// What `bench schedules` on the chain answers to arguments that it refuses: exit 2, soon.
std::string RefusalOf(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"bench", "schedules", kChain};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Outcome outcome = RunTroupe(all);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK_FALSE(outcome.timed_out);
  const auto lines = LinesOf(outcome.err);
  REQUIRE(lines.size() == 1);
  return lines.front();
}

/// The first words of the lines of a table, its head left out.
std::vector<std::string> KindsIn(const std::string& table) {
  std::vector<std::string> kinds;
  const auto lines = LinesOf(table);
  for (std::size_t i = 2; i < lines.size() && lines[i] != "cannot run:"; ++i) {
    kinds.push_back(lines[i].substr(0, lines[i].find(' ')));
  }
  return kinds;
}

/// An entry of the chain with measured steps of these times.
BenchEntry Measured(const std::string& kind, const std::vector<double>& step_ms) {
  BenchEntry entry{LoadCandidate({kChain, {}}, kind, 8), {}};
  entry.step_ms = step_ms;
  entry.bubbles.assign(step_ms.size(), kind == "1f1b" ? 0.3 : 0.2);
  return entry;
}

}  // namespace

TEST_CASE("the interval of a median is that of the binomial distribution", "[cli]") {
  const auto interval = [](int n) {
    std::vector<double> samples;
    for (int i = n; i >= 1; --i) samples.push_back(i);
    const Interval95 found = MedianOf(samples);
    REQUIRE(found.bounds);
    return std::vector<double>{found.bounds->low, found.median, found.bounds->high};
  };
  CHECK(interval(6) == std::vector<double>{1, 3.5, 6});  // 96.9%; of 5 samples only 93.8%
  CHECK(interval(7) == std::vector<double>{1, 4, 7});    // 98.4%; from the second on only 87.5%
  CHECK(interval(8) == std::vector<double>{1, 4.5, 8});
  CHECK(interval(9) == std::vector<double>{2, 5, 8});    // 96.1%
  CHECK(interval(15) == std::vector<double>{4, 8, 12});  // 96.5%
  CHECK_THROWS_AS(MedianOf({}), std::invalid_argument);
}

TEST_CASE("fewer than 6 samples have a median and no interval", "[cli]") {
  for (int n = 1; n <= 5; ++n) {
    const Interval95 found = MedianOf(std::vector<double>(static_cast<std::size_t>(n), 4.0));
    CHECK(found.median == 4.0);
    CHECK_FALSE(found.bounds);
  }
  CHECK(MeasuredTitle(5) == "measured, median of 5; an interval needs at least 6 repetitions");
  CHECK(MeasuredTitle(6) == "measured, median of 6 with its 95% interval");
}

TEST_CASE("a verdict knows noise from a difference, and when it cannot", "[cli]") {
  const BenchEntry base = Measured("1f1b", {10, 11, 12, 13, 14, 15});
  CHECK(VerdictText(Measured("zb-h1", {8, 8, 9, 9, 9, 10.5}), base) ==
        "no difference from 1f1b beyond the noise");
  CHECK_THAT(VerdictText(Measured("zb-h1", {8, 8, 9, 9, 9, 9.5}), base),
             StartsWith("28.0% faster than 1f1b: the bubble is 20.0% instead of 30.0%"));
  CHECK_THAT(VerdictText(Measured("zb-h1", {9}), Measured("1f1b", {12.5})),
             StartsWith("28.0% faster than 1f1b (which may be noise)"));
}

TEST_CASE("samples per second follow from the global batch, and unlike batches are named",
          "[cli]") {
  const BenchEntry four{LoadCandidate({kChain, {}}, "1f1b", 4), {20.0, 0.0, {}}};
  const BenchEntry eight{LoadCandidate({kChain, {}}, "1f1b", 8), {40.0, 0.0, {}}};
  const auto batch = static_cast<double>(four.candidate.global_batch());
  CHECK(eight.candidate.global_batch() == 2 * four.candidate.global_batch());
  CHECK(four.samples_per_second() == Approx(50.0 * batch));
  CHECK(eight.samples_per_second() == Approx(50.0 * batch));
  CHECK(BatchesText({four, four}).empty());
  CHECK(BatchesText({four, eight}) ==
        "global batches differ: " + std::to_string(four.candidate.global_batch()) +
            " samples with 4 microbatches, " + std::to_string(eight.candidate.global_batch()) +
            " with 8; compare samples/s, not step times\n");
  const Outcome outcome =
      RunTroupe({"bench", "schedules", kChain, "--kinds", "1f1b", "--microbatches", "4,8"});
  INFO(outcome.out << outcome.err);
  CHECK_THAT(outcome.out, Contains("step ms  samples/s  bubble / ideal") &&
                              Contains("\nglobal batches differ: "));
}

TEST_CASE("schedules that take no time are as fast as each other", "[cli]") {
  const Outcome outcome = RunTroupe({"bench", "schedules", kChain, "--kinds", "1f1b,gpipe",
                                     "--scale", "language=0", "--virtual"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("as fast as 1f1b") && !Contains("nan"));
}

TEST_CASE("kinds are named as on the command line", "[cli]") {
  CHECK(OverridesOf("") == std::vector<std::string>{});
  CHECK(OverridesOf("zb-h1") == std::vector<std::string>{"schedule.kind=zb-h1"});
  CHECK(OverridesOf("interleaved:4") ==
        std::vector<std::string>{"schedule.kind=interleaved", "schedule.chunks=4"});
  for (const char* bad : {"1f1b:2", "csv", "csv:", ":", "1f2b"}) {
    CHECK_THROWS_WITH(OverridesOf(bad), Contains("expected 1f1b, gpipe"));
  }
  CHECK(KindsOf("--kinds", {"1f1b,gpipe", "zb-h1"}) ==
        std::vector<std::string>{"1f1b", "gpipe", "zb-h1"});
  CHECK(CountsOf("--microbatches", {"8,16", "100000"}) ==
        std::vector<std::int64_t>{8, 16, 100'000});
}

TEST_CASE("what is no kind or no number is refused with its flag and its text", "[cli]") {
  for (const char* bad : {"interleaved:0", "interleaved:-1", "interleaved:x",
                          "interleaved:", "interleaved:2.5", "interleaved:99999999999999999999"}) {
    CHECK_THROWS_WITH(KindsOf("--kinds", {"1f1b," + std::string(bad)}),
                      "--kinds: expected interleaved:CHUNKS with a whole number from 1 to 1024, "
                      "got \"" +
                          std::string(bad) + "\"");
  }
  for (const char* bad : {"", ",", "1f1b,", ",1f1b", "1f1b,,gpipe"}) {
    CHECK_THROWS_WITH(
        KindsOf("--kinds", {bad}),
        "--kinds: expected a kind before and after each comma, got \"" + std::string(bad) + "\"");
  }
  for (const char* bad : {"", "0,8", "8,,", "-1", "8 ", "x", "1.5", "100001"}) {
    CHECK_THROWS_WITH(CountsOf("--microbatches", {bad}),
                      "--microbatches: expected whole numbers from 1 to 100000 with commas "
                      "between, got \"" +
                          std::string(bad) + "\"");
  }
  CHECK(RefusalOf({"--kinds", "interleaved:0"}) ==
        "troupe: --kinds: expected interleaved:CHUNKS with a whole number from 1 to 1024, got "
        "\"interleaved:0\"");
  CHECK_THAT(RefusalOf({"--microbatches", "8,,"}),
             StartsWith("troupe: --microbatches: expected whole numbers"));
  const Outcome show = RunTroupe({"schedule", "show", kChain, "--kind", "interleaved:x"});
  CHECK(show.exit_code == 2);
  CHECK_THAT(show.err, StartsWith("troupe: --kind: expected interleaved:CHUNKS"));
}

TEST_CASE("a schedule that is no file is refused before it is read", "[cli]") {
  const ScratchFolder folder;
  const std::string fifo = folder / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);  // no process will ever write into it
  for (const std::string& path : {std::string("/dev/zero"), fifo}) {
    CHECK(RefusalOf({"--kinds", "1f1b,csv:" + path}) ==
          "troupe: --kinds: " + path + ": expected a regular file");
    CHECK(RefusalOf({"--durations", path}) ==
          "troupe: --durations: expected a run directory, got \"" + path + "\"");
  }
  const std::string large = folder / "large.csv";
  std::ofstream(large).seekp(65 << 20).put('0');  // of holes
  CHECK(RefusalOf({"--kinds", "csv:" + large}) ==
        "troupe: --kinds: " + large + ": expected at most 64 MiB, got more");
}

TEST_CASE("without kinds, all that fit are compared with the configuration's own", "[cli]") {
  const auto kinds = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"bench", "schedules", kChain};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = RunTroupe(all);
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return KindsIn(outcome.out);
  };
  using Kinds = std::vector<std::string>;
  CHECK(kinds({}) == Kinds{"1f1b", "gpipe", "interleaved:2", "zb-h1"});
  CHECK(kinds({"--set", "schedule.kind=zb-h1"}) ==
        Kinds{"zb-h1", "1f1b", "gpipe", "interleaved:2"});
  CHECK(kinds({"--set", "schedule.kind=interleaved", "--set", "schedule.chunks=4"}) ==
        Kinds{"interleaved", "1f1b", "gpipe", "zb-h1"});
}

TEST_CASE("a kind that cannot run is reported below the others, in one line", "[cli]") {
  const auto outcome = RunTroupe({"bench", "schedules", kChain, "--microbatches", "6"});
  CHECK(outcome.exit_code == 0);
  CHECK(KindsIn(outcome.out) == std::vector<std::string>{"1f1b", "gpipe", "zb-h1"});
  CHECK_THAT(outcome.out,
             Catch::EndsWith("\ncannot run:\ninterleaved:2: schedule.microbatches: expected a "
                             "multiple of modules.language.layout.pp = 4, got 6\n"));
}

TEST_CASE("what is wrong whatever the kind is said once", "[cli]") {
  CHECK_THAT(RefusalOf({"--set", "modules.language.forward=1"}), Contains("unknown key"));
  CHECK(RefusalOf({"--scale", "visio=2"}) ==
        "the configuration's own kind, gpipe, interleaved:2, zb-h1: --scale visio=2: there is no "
        "module \"visio\"");
}

TEST_CASE("a bubble counts every stage with as many ranks as it has", "[cli]") {
  // vision: one stage on 4 ranks; language: two on 2 ranks each.
  const Candidate candidate = LoadCandidate({"configs/shapes.toml", {}}, "", 2);
  REQUIRE(candidate.plan->stages().size() == 3);
  Simulation simulation;
  simulation.makespan_ns = 100;
  simulation.stages = {{{{PassKind::kForward, 0}, 0, 10}},
                       {{{PassKind::kForward, 0}, 0, 20}, {{PassKind::kBackward, 0}, 20, 60}},
                       {{{PassKind::kForward, 0}, 0, 30}}};
  // 10 x 4 + 60 x 2 + 30 x 2 of 100 x 8
  CHECK(BubbleOf(*candidate.plan, simulation) == Approx(1.0 - 220.0 / 800.0));
}

TEST_CASE("a place for the JSON that cannot be written is refused before the job runs", "[cli]") {
  const ScratchFolder folder;
  const Outcome outcome = RunTroupe({"bench", "schedules", kChain, "--kinds", "1f1b", "--measure",
                                     "--json", folder / "none/samples.json"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err == "troupe: " + (folder / "none/samples.json") +
                           ": cannot write: No such file or directory\n");
}

TEST_CASE("measured schedules leave every sample in the JSON", "[cli]") {
  const ScratchFolder folder;
  const auto outcome =
      RunTroupe({"bench", "schedules", kChain, "--kinds", "1f1b,zb-h1", "--measure", "--reps", "2",
                 "--set", "modules.language.forward_ms=1", "--set",
                 "modules.language.backward_ms=2", "--json", folder / "b.json"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.err, Contains("running 1f1b, zb-h1 in turn, 2 times: a warm-up step and one "
                                   "that counts; at least 0 s\n1 of 2 took "));
  CHECK_THAT(outcome.out, StartsWith("measured, median of 2; an interval needs at least 6 "));
  std::ifstream in(folder / "b.json");
  const auto json = nlohmann::json::parse(in);
  REQUIRE(json["rows"].size() == 2);
  for (const auto& row : json["rows"]) {
    CHECK(row["measured_step_ms"].size() == 2);
    CHECK(row["simulation_error"].size() == 2);
    // A sleep never ends early, so no step is shorter than the schedule allows.
    for (const double step_ms : row["measured_step_ms"]) CHECK(step_ms >= row["simulated_step_ms"]);
  }
}

}  // namespace troupe
