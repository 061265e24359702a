// Answers of runs and folders, as a user asks for them.
#include <filesystem>
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
  CHECK_THAT(one.err, Contains("answered 1/1, 13 tokens, ") && Contains("1 thread,"));

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
  CHECK_THAT(drawn.err, Contains("1 answer cut by --max-new-tokens"));

  // Nothing is overwritten.
  const Outcome again = RunTroupe({"generate", run, "--questions", questions, "--out", out});
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Contains(out + " exists; expected the name of a new file"));
  CHECK(BytesOf(out) == all.out);
  const Outcome late = RunTroupe(
      {"generate", run, "--out", folder / "late.jsonl", "--questions", folder / "none.jsonl"});
  CHECK(late.exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(folder / "late.jsonl"));

  // A damaged checkpoint answers nothing, and is not exported.
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (!entry.path().filename().string().starts_with("language.s0-dp0-cp0-tp0")) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
    break;
  }
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"generate", checkpoint, "--prompt", "x"},
        {"export", checkpoint, "--out", folder / "damaged"}}) {
    const Outcome damaged = RunTroupe(verb);
    CHECK(damaged.exit_code == 1);
    CHECK_THAT(damaged.err, Contains("damaged since it was written"));
  }
}

TEST_CASE("a run knows when a folder that it started from has changed", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"edges.vision.language.through.hidden=64"}).exit_code == 0);
  const std::string model = folder / "model";
  REQUIRE(RunTroupe({"export", FindRun(folder / "runs/latest"), "--out", model}).exit_code == 0);
  REQUIRE(folder
              .Train({"model.from=hf:" + model, "data.tokenizer=bytes", "data.prompt=lines",
                      "edges.vision.language.through.hidden=64", "modules.vision.frozen=true"})
              .exit_code == 0);
  const std::string run = FindRun(folder / "runs/latest");
  const std::vector<std::string> ask = {"generate", run, "--prompt", "x"};
  CHECK(RunTroupe(ask).exit_code == 0);
  // Somewhere else it is the same.
  std::filesystem::rename(model, folder / "moved");
  CHECK(RunTroupe(ask).exit_code == 2);
  std::vector<std::string> moved = ask;
  for (const char* module : {"vision", "language"}) {
    moved.insert(moved.end(),
                 {"--set", std::string("modules.") + module + ".weights=hf:" + (folder / "moved")});
  }
  const Outcome found = RunTroupe(moved);
  INFO(found.err);
  CHECK(found.exit_code == 0);
  {
    std::fstream file(folder / "moved/model.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x33');
  }
  const Outcome changed = RunTroupe(moved);
  CHECK(changed.exit_code == 2);
  CHECK_THAT(changed.err, Contains("of the folder have changed since the run started"));
  std::filesystem::rename(folder / "moved", model);
  CHECK(RunTroupe({"export", run, "--out", folder / "again"}).exit_code == 2);
  CHECK(RunTroupe({"train", "--resume", run, "--set", "run.steps=4"}).exit_code == 2);
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
  CHECK_THAT(refused({"generate", run, "--prompt", "x", "--out", folder / "x"}),
             Contains("--out belongs to --questions"));
  CHECK_THAT(refused({"generate", run, "--prompt", "x", "--top-k", "3"}),
             Contains("--top-k and --top-p belong to --temperature"));
  CHECK_THAT(refused({"generate", run, "--prompt", "x", "--temperature", "nan"}),
             Contains("expected numbers, got nan"));
  CHECK_THAT(refused({"generate", "tests/oracle/llama", "--prompt", "x"}),
             Contains("found neither; state --tokenizer"));
  CHECK_THAT(refused({"generate", run, "--prompt", "x", "--format", "poem"}),
             Contains("--format: expected auto, lines, plain"));
  CHECK_THAT(refused({"generate", run, "--prompt", std::string(5000, 'x')}),
             Contains("the context of the model, got"));
  CHECK_THAT(refused({"generate", run, "--questions", folder / "none.jsonl"}),
             Contains("none.jsonl: no such file"));
  CHECK_THAT(refused({"generate", "tests/oracle/clip", "--tokenizer", "bytes", "--prompt", "x"}),
             Contains("tests/oracle/clip/config.json: expected a language model or a LLaVA"));
}

}  // namespace
}  // namespace troupe
