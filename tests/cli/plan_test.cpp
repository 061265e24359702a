// `troupe plan` from the outside.
#include <fstream>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "files/text_file.hpp"
#include "files/usable_cores.hpp"
#include "layout/text.hpp"
#include "plan/search/space.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/plan/random_job.hpp"

namespace troupe {
namespace {

using Catch::Contains;

constexpr const char* kPlanned = "configs/shapes.toml";

}  // namespace

TEST_CASE("plan prints plans from the fastest on, and writes files that check accepts", "[cli]") {
  const ScratchFolder folder;
  const std::string out = folder / "plans";
  const Outcome planned = RunTroupe({"plan", kPlanned, "--gpus", "8", "--device", "h100-80g",
                                     "--top", "3", "--explain", "3", "--out", out});
  INFO(planned.out << planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains("8 devices of h100-80g: NVIDIA H100 data sheet"));
  CHECK_THAT(planned.out, Contains("\n1  ") && Contains("\n3  "));
  CHECK_THAT(planned.out, Contains("\nstep  "));
  CHECK_THAT(planned.err,
             Contains(" ways to run language, ") && Contains(" priced in full, searched in "));
  for (const char* name : {"plan1.toml", "plan2.toml", "plan3.toml"}) {
    const Outcome checked = RunTroupe({"check", out + "/" + name});
    INFO(name << checked.out << checked.err);
    CHECK(checked.exit_code == 0);
    CHECK_THAT(checked.out, Contains("global batch 32"));
  }
}

TEST_CASE("files of plans have what --set said, and replace no other file", "[cli]") {
  const ScratchFolder folder;
  const std::string out = folder / "plans";
  const std::vector<std::string> plan = {"plan",     kPlanned,
                                         "--device", "h100-80g",
                                         "--top",    "1",
                                         "--set",    "modules.language.layers=6",
                                         "--set",    "edges.vision.language.through.hidden=96",
                                         "--out",    out};
  REQUIRE(RunTroupe(plan).exit_code == 0);
  const std::string file = out + "/plan1.toml";
  const Outcome explained = RunTroupe({"check", file, "--explain", "modules.language.layers"});
  CHECK_THAT(explained.out, Contains("modules.language.layers = 6"));
  CHECK(RunTroupe(plan).exit_code == 0);  // its own file may be replaced
  const Outcome again =
      RunTroupe({"plan", file, "--device", "h100-80g", "--top", "1", "--out", out});
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Contains("which the plans extend; expected another folder"));
  std::ofstream(file) << "schema = 1\n";
  const Outcome other = RunTroupe(plan);
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, Contains("is there and was not made by troupe plan"));
}

TEST_CASE("files of plans have the plan's ranks and layouts, not those of --set", "[cli]") {
  const ScratchFolder folder;
  const std::string out = folder / "plans";
  const Outcome planned =
      RunTroupe({"plan", kPlanned, "--gpus", "2", "--device", "h100-80g", "--top", "64", "--out",
                 out, "--set", "modules.vision.ranks=4-7", "--set", "modules.vision.layout.dp=4"});
  INFO(planned.out << planned.err);
  CHECK(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains("in language"));
}

TEST_CASE("plan explains the best plan next to the second one, or alone", "[cli]") {
  const auto explained = [](const std::string& top, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan",     kPlanned,    "--gpus", "8",     "--device",
                                          "h100-80g", "--explain", "1",      "--top", top};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTroupe(arguments).out;
  };
  CHECK_THAT(explained("2", {}), Contains("#1") && Contains("#2  difference"));
  const std::string alone = explained("1", {});
  CHECK_THAT(alone, Contains("busiest devices of language, ms") && !Contains("difference"));
  CHECK_THAT(explained("2", {"--against", "1"}), !Contains("difference"));
}

TEST_CASE("plan says why the others take longer than the first one", "[cli]") {
  const auto planned = [](const std::string& top) {
    return RunTroupe({"plan", kPlanned, "--gpus", "8", "--device", "h100-80g", "--top", top}).out;
  };
  const std::string two = planned("2");
  INFO(two);
  const auto reasons = two.find("ms longer than 1  most of it\n2 ");
  REQUIRE(reasons != std::string::npos);
  CHECK_THAT(two.substr(reasons), Contains("language: ") && Contains("\nnow "));
  CHECK_THAT(planned("1"), Contains("most of it\nnow "));
}

TEST_CASE("files of an earlier run with more plans are removed, others stay", "[cli]") {
  const ScratchFolder folder;
  const std::string out = folder / "plans";
  const auto plan = [&](const std::string& top) {
    return RunTroupe(
        {"plan", kPlanned, "--gpus", "8", "--device", "h100-80g", "--top", top, "--out", out});
  };
  REQUIRE(plan("3").exit_code == 0);
  std::ofstream(out + "/plan4.toml") << "schema = 1\n";
  const Outcome again = plan("1");
  CHECK_THAT(again.out, Contains("wrote plan1.toml to " + out + ", removed 2 files of more plans"));
  const auto is_there = [&](const std::string& name) {
    return std::ifstream(out + "/" + name).good();
  };
  CHECK(is_there("plan1.toml"));
  CHECK(!is_there("plan2.toml"));
  CHECK(!is_there("plan3.toml"));
  CHECK(is_there("plan4.toml"));
}

TEST_CASE("plan says why there are fewer plans than were asked for", "[cli]") {
  const Outcome outcome =
      RunTroupe({"plan", kPlanned, "--gpus", "8", "--device", "h100-80g", "--top", "64"});
  CHECK_THAT(outcome.out, Contains("no other plan that fits is estimated within 5% of the best"));
}

TEST_CASE("an encoder may have devices of another kind", "[cli]") {
  const ScratchFolder folder;
  const Outcome planned =
      RunTroupe({"plan", kPlanned, "--gpus", "8", "--device", "h100-80g", "--device-of",
                 "vision=l40s-48g:4", "--top", "1", "--explain", "1", "--out", folder / "plans"});
  INFO(planned.out << planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains("\nfor vision 4 devices of l40s-48g: NVIDIA L40S data sheet"));
  CHECK_THAT(planned.out, Contains(" + ") && Contains("\nMFU "));
  const std::string file = ReadWholeFile(folder / "plans/plan1.toml");
  CHECK_THAT(planned.out, Contains("\nwithout --device-of, with 8 GPUs "));
  CHECK_THAT(file, Contains("of h100-80g, with l40s-48g for vision\n") &&
                       Contains("modules.vision.ranks = "));
  CHECK(RunTroupe({"check", folder / "plans/plan1.toml"}).exit_code == 0);
}

TEST_CASE("a plan trains", "[cli]") {
  const ScratchFolder folder;
  const std::string out = folder / "plans";
  REQUIRE(RunTroupe(
              {"plan", kPlanned, "--gpus", "4", "--device", "a100-80g", "--top", "1", "--out", out})
              .exit_code == 0);
  const Outcome trained = RunTroupe({"train", out + "/plan1.toml", "--set", "run.steps=2", "--set",
                                     "run.dir=" + (folder / "runs")});
  INFO(trained.out << trained.err);
  CHECK(trained.exit_code == 0);
}

TEST_CASE("plan says what is wrong in one line", "[cli]") {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& text) {
    std::vector<std::string> all = {"plan"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunTroupe(all);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK_THAT(outcome.err, Contains(text));
  };
  refused({kPlanned, "--device", "h100"},
          "--device: expected a100-80g, b200-180g, h100-80g, h200-141g, l40s-48g or a file, got "
          "\"h100\"");
  refused({kPlanned, "--device", "h100-80g", "--gpus", "8", "--top", "2", "--explain", "3"},
          "--explain 3: there are 2 plans");
  refused({"configs/synthetic_chain.toml", "--device", "h100-80g"}, "states its times");
  refused({kPlanned}, "--device");
  const auto refused_of = [&](const std::string& value, const std::string& text) {
    refused({kPlanned, "--device", "h100-80g", "--device-of", value}, "--device-of" + text);
  };
  for (const std::string value : {"vision", "vision=l40s-48g", "vision=l40s-48g:0",
                                  "vision=l40s-48g:4x", "vision:4", "vision=l40s-48g:65537"}) {
    refused_of(value, ": expected MODULE=DEVICE:NUMBER, as in vision=l40s-48g:16, got \"" + value);
  }
  refused_of(
      "language=l40s-48g:4",
      ": expected an encoder of CONFIG (vision), got \"language\"; --device is for language");
  refused_of("=l40s-48g:4", ": expected an encoder of CONFIG (vision), got \"\"");
  refused_of("vision=l40s-48g:65536", " vision: expected at most 65536 devices in all");
  refused_of("vision=l40s:4", " vision: expected a100-80g, ");
  refused({kPlanned, "--device", "h100-80g", "--gpus"},
          "--gpus: expected a whole number from 1 to 65536, got none");
  refused({kPlanned, "--device", "h100-80g", "--out", ""}, "--out: expected a folder, got \"\"");
  refused({kPlanned, "--device", "h100-80g", "--out", "README.md"},
          "--out: expected a folder, got the file \"README.md\"");
  refused({kPlanned, "--device", "h100-80g", "--data", "--set", "data.train=none.json"},
          "data.train: \"none.json\": no such file");
}

TEST_CASE("a folder that cannot be made is another failure than a wrong argument", "[cli]") {
  const Outcome outcome =
      RunTroupe({"plan", kPlanned, "--device", "h100-80g", "--top", "1", "--out", "/proc/plans"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("/proc/plans: cannot create: "));
}

TEST_CASE("the source of a device cannot move the cursor", "[cli]") {
  const ScratchFolder folder;
  auto device = nlohmann::json::parse(BytesOf("devices/h100-80g.json"));
  device["source"] = "a data sheet\x1b[2J\rof somebody";
  const std::string file = folder.Write("device.json", device.dump());
  const Outcome outcome = RunTroupe({"plan", kPlanned, "--device", file, "--top", "1"});
  INFO(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains(": a data sheet?[2J?of somebody\n"));
}

TEST_CASE("a model that fits on no devices has no plan", "[cli]") {
  const Outcome outcome =
      RunTroupe({"plan", kPlanned, "--device", "l40s-48g", "--gpus", "1", "--set",
                 "modules.language.hidden=32768", "--set", "modules.language.heads=128", "--set",
                 "modules.language.kv_heads=128", "--set", "modules.language.mlp_hidden=131072"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("fits on 1 device of 48 GB"));
  CHECK_THAT(outcome.err, Contains("and neither does one on 16 times as many"));
}

TEST_CASE("where nothing fits, plan names what would be enough", "[cli]") {
  const Outcome outcome =
      RunTroupe({"plan", "configs/vlm_7b.toml", "--device", "h100-80g", "--gpus", "1"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK_THAT(outcome.err, Contains("enough by itself"));
  CHECK_THAT(outcome.err, Contains("\n--gpus 2 ") && Contains("\n--device h200-141g "));
}

namespace {

/// Trains `number` random plans of jobs of random sizes for two steps.
void TrainRandomPlans(int number, unsigned seed) {
  const ScratchFolder folder;
  std::mt19937 random(seed);
  int trained = 0;
  for (int draw = 0; trained < number; ++draw) {
    const auto [path, overrides] = RandomJob(random, draw);
    const Config config = LoadConfig(path, overrides).config;
    DeviceModel device = DeviceOfFlops(1e9);
    device.topology.devices_per_node = 8;
    const SearchSpace space(config, device, {.ranks = static_cast<int>(1 + random() % 8)});
    auto jobs = space.Best(3.0);
    if (jobs.empty()) continue;
    const PlannedJob& job = jobs[random() % jobs.size()];
    std::vector<std::string> arguments = {"train", path};
    auto settings = overrides;
    for (const std::string& setting : SettingsOf(config, job)) settings.push_back(setting);
    settings.insert(settings.end(), {"run.steps=2", "run.dir=" + (folder / "runs")});
    std::string text = path;
    for (const std::string& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
      text += " " + setting;
    }
    const Outcome outcome = RunTroupe(arguments);
    INFO(text << "\n" << outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    ++trained;
  }
}

}  // namespace

TEST_CASE("random plans train", "[cli]") { TrainRandomPlans(6, 1); }
TEST_CASE("forty random plans train", "[.plans]") { TrainRandomPlans(40, 2); }

TEST_CASE("plans are priced for the samples of the data, or of a list", "[cli]") {
  const ScratchFolder folder;
  const std::vector<std::string> plan = {"plan",     kPlanned,   "--gpus", "8",
                                         "--device", "a100-80g", "--top",  "1"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = plan;
    all.insert(all.end(), more.begin(), more.end());
    return RunTroupe(all);
  };
  CHECK_THAT(with({}).out, Contains("full samples; --data prices"));
  const Outcome data = with({"--data"});
  CHECK_THAT(data.out, Contains("samples of 55 tokens on average (27 to 87)"));
  CHECK_THAT(data.out, Contains("plan 1 with data.order = \"balanced\": "));
  const std::string list = folder / "samples.csv";
  std::ofstream(list) << "tokens,vision\n96,1\n40,0\n";
  const Outcome stated = with({"--samples", list});
  CHECK_THAT(stated.out, Contains("samples of 68 tokens on average (40 to 96), 0.50 full items"));
  std::ofstream(list) << "tokens,pictures\n96,1\n";
  const Outcome wrong = with({"--samples", list});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, Contains("--samples: " + list + ":1: expected columns of tokens"));
}

TEST_CASE("a run is planned again with what it measured, and goes on with that", "[cli]") {
  const ScratchFolder folder;
  const std::string dir = folder / "runs";
  const Outcome trained = RunTroupe({"train", kPlanned, "--set", "run.steps=6", "--set",
                                     "checkpoint.every=3", "--set", "run.dir=" + dir});
  REQUIRE(trained.exit_code == 0);
  const std::string run = dir + "/latest";
  const Outcome planned =
      RunTroupe({"plan", "--from", run, "--device", "l40s-48g", "--replan", "--top", "1"});
  INFO(planned.out << planned.err);
  REQUIRE(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains(" ms per step. Passes there, forward and backward, as multiples "
                                   "of those on l40s-48g: language "));
  CHECK_THAT(planned.out, Contains("less time than") && Contains("/plans/plan1.toml --resume "));
  // Ranks that are threads were timed on their cores, where nothing waits for a link.
  auto slow = nlohmann::json::parse(ReadWholeFile("devices/l40s-48g.json"));
  slow["inside"]["us"] = 1e6;
  std::ofstream(folder / "slow.json") << slow;
  const Outcome waits =
      RunTroupe({"plan", "--from", run, "--device", folder / "slow.json", "--top", "1"});
  const auto factors = [](const std::string& out) {
    const auto begin = out.find(": language ");
    return begin == std::string::npos ? "none" : out.substr(begin, out.find('\n', begin) - begin);
  };
  INFO(waits.out << waits.err);
  CHECK(factors(waits.out) == factors(planned.out));

  const Outcome resumed =
      RunTroupe({"train", run + "/plans/plan1.toml", "--resume", run, "--set", "run.steps=8"});
  INFO(resumed.out << resumed.err);
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, Contains("resuming after step 6"));

  const std::string crowded = RanksOnCores(8, UsableCores()) + " there: its steps took longer";
  CHECK((planned.out.find(crowded) != std::string::npos) == (UsableCores() < 8));
  const Outcome layout = RunTroupe({"plan", "configs/shapes_colocated.toml", "--from", run,
                                    "--device", "l40s-48g", "--top", "1"});
  INFO(layout.err);
  CHECK(layout.exit_code == 0);
  const Outcome sizes =
      RunTroupe({"plan", kPlanned, "--from", run, "--device", "l40s-48g", "--set",
                 "modules.language.mlp_hidden=256", "--set", "modules.language.layers=6"});
  CHECK(sizes.exit_code == 2);
  CHECK_THAT(sizes.err,
             Contains(": expected a run of the same modules, got: modules.language.layers is 6, "
                      "that run has 4; modules.language.mlp_hidden is 256, that run has 192\n"));
  const Outcome more = RunTroupe(
      {"plan", "configs/shapes_two_encoders.toml", "--from", run, "--device", "l40s-48g"});
  CHECK(more.exit_code == 2);
  CHECK_THAT(more.err, Contains("got: that run has no module detail\n"));

  CHECK(RunTroupe({"plan", "--device", "l40s-48g"}).exit_code == 2);
  CHECK(RunTroupe({"plan", "--from", folder / "none", "--device", "l40s-48g"}).exit_code != 0);
}

}  // namespace troupe
