// Answers of runs and folders, as a user asks for them.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;

constexpr const char* kImage = "data/shapes/images/train_0000.png";

std::vector<nlohmann::json> LinesAsJson(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (const std::string& line : LinesOf(text)) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST_CASE("a run answers, its checkpoint and its export give the same answers", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder
              .Train({"edges.vision.language.through.hidden=64", "run.steps=30",
                      "optimizer.learning_rate=0.01", "checkpoint.every=30"})
              .exit_code == 0);
  const std::string run = FindRun(folder / "runs/latest");
  const Outcome one = RunTroupe({"generate", run, "--image", kImage, "--prompt", "What?"});
  INFO(one.err);
  REQUIRE(one.exit_code == 0);
  CHECK(one.out == "a red circle\n");  // the only answer of the data set
  CHECK_THAT(one.err, Contains("float32 on cpu") && Contains("prompt format lines"));
  CHECK_THAT(one.err, Contains("answered 1/1, 13 tokens, "));

  std::ofstream(folder / "q.jsonl")
      << R"({"question_id": "b", "image": "images/good.png", "text": "What?"})" << '\n'
      << R"({"question_id": 2, "text": "What?"})" << '\n'
      << R"({"question_id": 3, "image": ["images/good.png"], "text": "<image>\nIs?"})" << '\n';
  const std::string questions = folder / "q.jsonl";
  const Outcome all = RunTroupe({"generate", run, "--questions", questions});
  INFO(all.err);
  REQUIRE(all.exit_code == 0);
  const auto lines = LinesAsJson(all.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["question_id"] == "b");
  CHECK(lines[0]["text"] == "a red circle");
  CHECK(lines[0]["prompt"] == "What?");
  CHECK(lines[1]["question_id"] == 2);
  CHECK(run.ends_with(lines[2]["model_id"].get<std::string>()));

  // One at a time; from the checkpoint; from the folder, whose name is another.
  const std::string out = folder / "answers.jsonl";
  REQUIRE(RunTroupe({"generate", run, "--questions", questions, "--batch", "1", "--out", out,
                     "--threads", "1"})
              .exit_code == 0);
  CHECK(BytesOf(out) == all.out);
  const std::string checkpoint = run + "/checkpoints/step-00000030";
  CHECK(RunTroupe({"generate", checkpoint, "--questions", questions}).out == all.out);
  REQUIRE(RunTroupe({"export", run, "--out", folder / "model"}).exit_code == 0);
  const Outcome exported =
      RunTroupe({"generate", folder / "model", "--tokenizer", "bytes", "--format", "lines",
                 "--questions", questions, "--model-id", lines[0]["model_id"]});
  INFO(exported.err);
  CHECK(exported.out == all.out);

  const Outcome drawn = RunTroupe({"generate", run, "--image", kImage, "--prompt", "What?",
                                   "--temperature", "50", "--max-new-tokens", "6"});
  CHECK(drawn.exit_code == 0);
  CHECK(drawn.out != one.out);
  CHECK_THAT(drawn.err, Contains("the answer was cut after 6 tokens, see --max-new-tokens"));
}

TEST_CASE("what cannot be answered is refused in a line", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train().exit_code == 0);
  const std::string run = FindRun(folder / "runs/latest");
  const auto refused = [](const std::vector<std::string>& arguments) {
    const Outcome outcome = RunTroupe(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK_THAT(refused({"generate", folder / "none", "--prompt", "x"}),
             Contains("none: expected a Hugging Face folder, a run directory or a checkpoint"));
  CHECK_THAT(refused({"generate", run}),
             Contains("expected one of --prompt and --questions, got neither"));
  CHECK_THAT(refused({"generate", run, "--prompt", "x", "--image", folder / "none.png"}),
             Contains("none.png"));
  CHECK_THAT(refused({"generate", run, "--prompt", "<image>"}),
             Contains("--prompt: expected as many images as the prompt has \"<image>\", got 0 and "
                      "1"));
  CHECK_THAT(refused({"generate", run, "--prompt", "x", "--format", "poem"}),
             Contains("--format: expected auto, lines, plain"));
  CHECK_THAT(refused({"generate", run, "--prompt", std::string(5000, 'x')}),
             Contains("the context of the model, got"));
  CHECK_THAT(refused({"generate", run, "--questions", folder / "none.jsonl"}),
             Contains("none.jsonl: no such file"));
  CHECK_THAT(refused({"generate", "tests/oracle/clip", "--prompt", "x"}),
             Contains("tests/oracle/clip/config.json: expected a language model or a LLaVA"));
}

}  // namespace
}  // namespace troupe
