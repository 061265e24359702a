// What a run that went well leaves behind and shows.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "checkpoint/safetensors.hpp"
#include "configs/loader.hpp"
#include "modules/torch/reference.hpp"
#include "tests/cli/run_folder.hpp"
#include "trace/run_trace.hpp"

namespace troupe {
namespace {

using Catch::Contains;
using Catch::StartsWith;

std::vector<std::string> FilesOf(const std::string& run) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("a run leaves five files, and each can be read", "[cli]") {
  const RunFolder folder;
  const Outcome outcome =
      folder.Train({"run.evaluate_every=2", "data.held_out=" + (folder / "train.json")});
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(LinesOf(outcome.err).empty());
  REQUIRE(folder.Runs().size() == 1);
  const std::string run = folder.Runs()[0];
  CHECK(FilesOf(run) == std::vector<std::string>{"metrics.jsonl", "report.html", "resolved.toml",
                                                 "trace", "weights.safetensors"});
  // What it came to are the last lines, the loss among them once.
  const std::vector<std::string> lines = LinesOf(outcome.out);
  REQUIRE(lines.size() > 4);
  CHECK_THAT(lines[lines.size() - 4], StartsWith("held out after 3 steps: loss "));
  CHECK_THAT(lines[lines.size() - 3],
             StartsWith("trained 3 steps in ") && Contains(" tok/s, ") && Contains(" samples/s"));
  CHECK_THAT(lines[lines.size() - 2], StartsWith("run directory " + run + ": resolved.toml"));
  CHECK(lines.back() == "report        " + run + "/report.html");
  CHECK_THAT(BytesOf(run + "/report.html"),
             Contains("\"held_out_loss\":[[0,") && Contains("\"label\":\"rank 4: vision.s0\""));

  const SafetensorsReader weights(run + "/weights.safetensors");
  const Config config = LoadConfig(run + "/resolved.toml", {}).config;
  const auto parameters = Reference(config).Tensors(TensorKind::kParameter);
  CHECK(weights.entries().size() == parameters.size());
  for (const TensorPiece& parameter : parameters) {
    INFO(parameter.name);
    REQUIRE(weights.Find(parameter.name) != nullptr);
    CHECK(weights.Find(parameter.name)->shape == parameter.global_shape);
  }
  const RunTrace trace = ReadRunTrace(run);
  REQUIRE(trace.processes.size() == 1);
  CHECK(trace.processes[0].torn == 0);
  CHECK(trace.processes[0].dropped == 0);
  CHECK(trace.stages.size() == 3);
  CHECK(!trace.messages.empty());

  std::ifstream metrics(run + "/metrics.jsonl");
  std::string kinds;
  for (std::string line; std::getline(metrics, line);) {
    const auto value = nlohmann::json::parse(line);
    kinds +=
        value.at("kind").get<std::string>() + std::to_string(value.at("step").get<int>()) + " ";
    CHECK(value.at("loss").get<double>() > 0);
  }
  CHECK(kinds == "held_out0 step1 step2 held_out2 step3 held_out3 ");
}

/// configs/shapes.toml with a second language model on a rank of its own.
std::string TwoLanguageModels(const RunFolder& folder) {
  const std::string path = folder / "two_sinks.toml";
  std::ofstream(path) << "schema = 1\nextends = [\""
                      << (std::filesystem::current_path() / "configs/shapes.toml").string() << R"("]
[cluster]
ranks = 9
[modules.caption]
kind = "llama"
ranks = "8"
vocab = 260
hidden = 32
layers = 1
heads = 2
kv_heads = 1
mlp_hidden = 64
context = 96
[[edges]]
from = "vision"
to = "caption"
through = { kind = "mlp2", hidden = 32 }
)";
  return path;
}

TEST_CASE("a global batch that is larger than the data set is a warning", "[cli]") {
  const RunFolder folder;
  const auto with_rows = [&](int rows) {
    std::string list = RowText("images/good.png");
    for (int row = 1; row < rows; ++row) list += "," + RowText("images/good.png");
    folder.WriteRows("[" + list + "]");
    const Outcome outcome = folder.Train({"run.steps=1"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out + outcome.err;
  };
  const std::string seven = with_rows(7);
  CHECK_THAT(seven, Contains("\n7 rows, 1.1 epochs\n"));
  CHECK_THAT(seven, Contains("troupe: warning: " + (folder / "train.json") +
                             ": the global batch of 8 is larger than the data set of 7 "
                             "rows, so each step sees rows more than once\n"));
  CHECK_THAT(with_rows(8),
             Contains("\n8 rows, 1.0 epochs\n") && !Contains("larger than the data set"));
}

TEST_CASE("with two language models each loss is reported, and `loss` is what gradients are of",
          "[cli]") {
  const RunFolder folder;
  const Outcome outcome = RunTroupe(folder.Arguments("train", TwoLanguageModels(folder),
                                                     {"data.held_out=" + (folder / "train.json")}));
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains(" (language ") && Contains(", caption "));
  std::ifstream metrics(folder.Runs().at(0) + "/metrics.jsonl");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) {
    const auto value = nlohmann::json::parse(line);
    const auto& losses = value.at("losses");
    REQUIRE(losses.size() == 2);
    const double language = losses.at("language").get<double>();
    const double caption = losses.at("caption").get<double>();
    CHECK(language != caption);
    CHECK(language > 1.0);
    CHECK(caption > 1.0);
    CHECK(value.at("loss").get<double>() == Approx(language + caption).epsilon(1e-9));
  }
  CHECK(lines == 5);
}

TEST_CASE("the configuration in a run directory repeats the run", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train().exit_code == 0);
  const std::string first = folder.Runs().at(0);
  REQUIRE(RunTroupe({"train", first + "/resolved.toml"}).exit_code == 0);
  REQUIRE(folder.Runs().size() == 2);
  const std::string second = folder.Runs()[0] == first ? folder.Runs()[1] : folder.Runs()[0];
  CHECK(BytesOf(first + "/resolved.toml") == BytesOf(second + "/resolved.toml"));
  CHECK(BytesOf(first + "/weights.safetensors") == BytesOf(second + "/weights.safetensors"));
}

TEST_CASE("a name that is taken gets a number behind it", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"run.steps=1"}).exit_code == 0);
  // Directories for this second and those after it: the next run finds its name taken.
  const std::string first = folder.Runs().at(0);
  for (int i = 0; i < 60; ++i) {
    const std::time_t then = std::time(nullptr) + i;
    std::tm utc{};
    gmtime_r(&then, &utc);
    char stamp[32];
    std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &utc);
    std::filesystem::create_directory(folder / ("runs/shapes-" + std::string(stamp)));
  }
  const Outcome again = folder.Train({"run.steps=1"});
  CHECK(again.exit_code == 0);
  const auto runs = folder.Runs();
  const auto numbered = std::find_if(runs.begin(), runs.end(),
                                     [](const std::string& r) { return r.ends_with("-2"); });
  REQUIRE(numbered != runs.end());
  CHECK(FilesOf(*numbered).size() == 5);
}

TEST_CASE("a terminal gets a bar, a file gets a line per step", "[cli]") {
  const RunFolder folder;
  ProcessOptions terminal;
  terminal.terminal = true;
  const Outcome bar = folder.Train({}, terminal);
  CHECK(bar.exit_code == 0);
  CHECK_THAT(bar.out, Contains("\r\033[K[====================") && Contains("step 3/3"));
  const Outcome lines = folder.Train();
  CHECK_THAT(lines.out, Contains("\nstep 1/3  loss ") && Contains("\nstep 3/3  loss "));
  CHECK_THAT(lines.out, !Contains("\r") && !Contains("\033"));
}

TEST_CASE("the first lines of a run appear before its first step is done", "[cli]") {
  const RunFolder folder;
  ProcessOptions options;
  options.interrupt_at = "run directory";
  const Outcome outcome = folder.Train({"run.steps=100000"}, options);
  WARN("until the run directory is named: " << outcome.seconds << " s");
  CHECK(outcome.exit_code == 130);
}

}  // namespace troupe
