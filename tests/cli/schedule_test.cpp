// The verbs about schedules, as a user runs them, and the arithmetic of their tables.
#include <cmath>
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>

#include "cli/schedule/bench_table.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;

constexpr const char* kChain = "configs/synthetic_chain.toml";

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// What a refused command says: one line, exit 2, soon.
std::string RefusedLine(const std::vector<std::string>& arguments) {
  const Outcome outcome = RunTroupe(arguments);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.seconds < 30.0);
  const auto lines = LinesOf(outcome.err);
  REQUIRE(lines.size() == 1);
  return lines.front();
}

}  // namespace

TEST_CASE("the bubbles of a chain are the textbook ones, simulated and by the actors", "[cli]") {
  const std::vector<std::pair<std::string, double>> kinds = {
      {"1f1b", 3.0 / 8}, {"gpipe", 3.0 / 8}, {"zb-h1", 1.0 / 8}, {"interleaved:2", 1.5 / 8}};
  for (const auto& [kind, waiting] : kinds) {
    INFO(kind);
    const Candidate candidate = LoadCandidate({kChain, {}}, kind, 8);
    const StageTimes times = TimesOf(candidate);
    const SimulatedRow row = SimulateRow(candidate, times);
    CHECK(row.bubble == Approx(waiting / (1.0 + waiting)));
    CHECK(*IdealBubble(candidate) == Approx(row.bubble));
    CHECK(RunVirtually(candidate, times, 1).step_ms == Approx(row.step_ms).epsilon(1e-9));
  }
}

TEST_CASE("scaling a module scales its passes and no others", "[cli]") {
  const Candidate candidate = LoadCandidate({"configs/synthetic_8stages.toml", {}}, "", 0);
  StageTimes times = TimesOf(candidate);
  Scale(times, candidate, {"vision=0.5"});
  CHECK(times.stages[0].forward_ns == 1'000'000);
  CHECK(times.stages[0].backward_ns == 2'000'000);
  CHECK(times.stages[2].forward_ns == 1'000'000);  // detail's own
  CHECK(times.stages[3].backward_ns == 4'000'000);
  for (const char* bad : {"vision", "vision=", "vision=x", "vision=-1", "vision=1x", "visio=2"}) {
    CHECK_THROWS_AS(Scale(times, candidate, {bad}), LayoutError);
  }
}

TEST_CASE("a stage that is frozen has no backward but that of what trains on it", "[cli]") {
  const auto times = [](std::vector<std::string> overrides) {
    return TimesOf(LoadCandidate({"configs/shapes.toml", std::move(overrides)}, "", 0)).stages;
  };
  const auto trained = times({});
  CHECK(trained[0].backward_ns > 19 * trained[0].forward_ns / 10);  // pixels have no gradient
  const auto frozen = times({"modules.vision.frozen=true"});
  CHECK(frozen[0].forward_ns == trained[0].forward_ns);
  // The projector: 2 images of 16 rows, 64 to 128 to 64, at 10 operations in a ns; the gradients of
  // both weights, and that of what lies between.
  CHECK(frozen[0].backward_ns == std::llround(3 * 2.0 * 32 * 64 * 128 / 10));
  CHECK(frozen[0].weight_ns == std::llround(2 * 2.0 * 32 * 64 * 128 / 10));
  CHECK(frozen[1].backward_ns == trained[1].backward_ns);
  const auto at_language =
      times({"modules.vision.frozen=true", "edges.vision.language.through.on=to"});
  CHECK(at_language[0].backward_ns == 0);
  CHECK(at_language[0].forward_ns < trained[0].forward_ns);
  CHECK(at_language[1].backward_ns > trained[1].backward_ns);
}

TEST_CASE("an inline encoder takes its time on its host's first stage", "[cli]") {
  const auto apart = TimesOf(LoadCandidate({"configs/shapes.toml", {}}, "", 0)).stages;
  const auto inside = TimesOf(LoadCandidate({"configs/shapes_inline.toml", {}}, "", 0)).stages;
  REQUIRE(inside.size() == 2);
  // Four replicas with a rank each become one with two. Both compute the whole of the first product, of 16
  // patches of 8 images, and of the gradient of its weight.
  const std::int64_t half = std::llround(0.5 * 2.0 * 8 * 16 * 64 * 192 / 10);
  const auto expected = [half](std::int64_t language, std::int64_t vision) {
    return language + 2 * vision + half;
  };
  CHECK(std::abs(inside[0].forward_ns - expected(apart[1].forward_ns, apart[0].forward_ns)) < 4);
  CHECK(std::abs(inside[0].backward_ns - expected(apart[1].backward_ns, apart[0].backward_ns)) < 4);
  CHECK(inside[1].forward_ns == apart[2].forward_ns);
}

TEST_CASE("actors in virtual time run what is frozen and what is inline as simulated", "[cli]") {
  const std::vector<ConfigArguments> configs = {
      {"configs/shapes_inline.toml", {}},
      {"configs/shapes_inline.toml", {"modules.language.frozen=true"}},
      {"configs/shapes_frozen.toml", {}},
      {"configs/shapes_frozen.toml", {"edges.vision.language.through.on=to"}},
      {"configs/shapes_frozen.toml", {"modules.language.frozen=true"}}};
  for (const ConfigArguments& config : configs) {
    for (const char* kind : {"1f1b", "gpipe", "interleaved:2", "zb-h1"}) {
      INFO(config.path << " "
                       << Catch::StringMaker<std::vector<std::string>>::convert(config.overrides)
                       << " " << kind);
      const Candidate candidate = LoadCandidate(config, kind, 0);
      const StageTimes times = TimesOf(candidate);
      CHECK(RunVirtually(candidate, times, 1).step_ms ==
            Approx(SimulateRow(candidate, times).step_ms).epsilon(1e-9));
    }
  }
}

TEST_CASE("the labels that a last stage has not come to yet hold no first stage back", "[cli]") {
  const ConfigArguments deep = {"configs/shapes.toml",
                                {"modules.language.layout={pp=4}", "schedule.microbatches=8",
                                 "edges.vision.language.credits=8"}};
  for (const char* kind : {"1f1b", "gpipe", "zb-h1"}) {
    INFO(kind);
    const Candidate candidate = LoadCandidate(deep, kind, 0);
    const StageTimes times = TimesOf(candidate);
    CHECK(RunVirtually(candidate, times, 1).step_ms ==
          Approx(SimulateRow(candidate, times).step_ms).epsilon(1e-9));
  }
}

TEST_CASE("what show writes, lint accepts and the configuration can run", "[cli]") {
  const ScratchFolder folder;
  const std::string file = folder / "mine.csv";
  for (const char* kind : {"1f1b", "gpipe", "zb-h1", "interleaved:2"}) {
    INFO(kind);
    const auto show =
        RunTroupe({"schedule", "show", kChain, "--kind", kind, "--out", "csv", "--file", file});
    REQUIRE(show.exit_code == 0);
    const auto lint = RunTroupe({"schedule", "lint", file, kChain});
    INFO(lint.err);
    CHECK(lint.exit_code == 0);
    CHECK_THAT(lint.out, Contains("8 microbatches") && Contains("fits the 4 pipeline ranks"));
  }
}

TEST_CASE("orders of several modules are said to be for reading, before they are refused",
          "[cli]") {
  const ScratchFolder folder;
  const std::string file = folder / "all.csv";
  const char* config = "configs/synthetic_8stages.toml";
  REQUIRE(RunTroupe({"schedule", "show", config, "--out", "csv", "--file", file}).exit_code == 0);
  const auto alone = RunTroupe({"schedule", "lint", file});
  CHECK(alone.exit_code == 0);
  CHECK_THAT(alone.out, Contains("\nit orders detail, language and vision together, for reading: "
                                 "schedule.kind = \"csv\" takes the rows of one module"));
  const std::string refusal =
      file +
      ": expected rows of language only, which feeds no other module, got rows of detail, "
      "vision, too: those follow 1f1b whatever a file says; leave their rows out and number "
      "the stages of language from 0";
  CHECK(RefusedLine({"schedule", "lint", file, config}) == refusal);
  CHECK(RefusedLine({"bench", "schedules", config, "--kinds", "csv:" + file}) ==
        "csv:" + file + ": " + refusal);
  CHECK(RefusedLine({"check", config, "--set", "schedule.kind=csv", "--set",
                     "schedule.file=" + file}) == refusal);
}

TEST_CASE("hostile schedules are refused in one line", "[cli]") {
  const ScratchFolder folder;
  const std::string file = folder / "bad.csv";
  Write(file, "0F0,0B0\n1F0,1B0\n\x1b[31m,\n");
  CHECK_THAT(RefusedLine({"schedule", "lint", file}), Contains("row 2 column 0: expected a stage"));
  Write(file, "65535F1000000,0F0");
  CHECK_THAT(RefusedLine({"schedule", "lint", file}), Contains("incomplete: no row has 0B0"));
  Write(file, std::string(8u << 20, ','));
  CHECK_THAT(RefusedLine({"schedule", "lint", file}), Contains("expected a row for each rank"));
  CHECK_THAT(RefusedLine({"schedule", "lint", folder / "none"}), Contains("no such file"));
  CHECK_THAT(RefusedLine({"schedule", "lint", "/dev/zero"}), Contains("expected a regular file"));
}

TEST_CASE("a schedule of modules that share ranks is drawn, and has no table", "[cli]") {
  CHECK_THAT(RefusedLine({"schedule", "show", "configs/shapes_colocated.toml", "--out", "csv"}),
             Contains("its modules share ranks"));
  const Outcome shown = RunTroupe({"schedule", "show", "configs/shapes_colocated.toml"});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, Contains("\nvision.s0,language.s0  0"));
}

TEST_CASE("with colocated encoders, actors in virtual time agree with the simulation", "[cli]") {
  const std::string layout = GENERATE("{tp=4,dp=2}", "{tp=2,pp=2,dp=2}");
  const std::string window = GENERATE("\"step\"", "2");
  const Outcome compared = RunTroupe(
      {"bench", "schedules", "configs/shapes_colocated.toml", "--virtual", "--microbatches", "8",
       "--set", "modules.language.layout=" + layout, "--set", "schedule.window=" + window});
  INFO(compared.out);
  CHECK(compared.exit_code == 0);
  std::istringstream lines(compared.out);
  int agree = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("  8   ") == std::string::npos) continue;
    ++agree;
    CHECK_THAT(line, Contains("(+0.000%)"));
  }
  CHECK(agree >= 2);
}

}  // namespace troupe
