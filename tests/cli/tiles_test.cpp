// A LLaVA becomes a LLaVA-NeXT, over processes and back, as a user does it.
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

constexpr const char* kImage = "tests/oracle/images/rgb_53x7.png";

std::string Newest(const RunFolder& folder) { return FindRun(folder / "runs/latest"); }

/// The losses of the steps of a run.
std::vector<double> Losses(const std::string& run) {
  std::vector<double> losses;
  std::ifstream lines(run + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("gradient_norm")) losses.push_back(json.at("loss").get<double>());
  }
  return losses;
}

TEST_CASE("a LLaVA becomes a LLaVA-NeXT and back, in one process and in eight", "[cli]") {
  const RunFolder folder;
  const std::string squares = folder / "squares";
  const std::string tiles = folder / "tiles";
  REQUIRE(folder.Train({"edges.vision.language.through.hidden=64"}).exit_code == 0);
  REQUIRE(RunTroupe({"export", Newest(folder), "--out", squares}).exit_code == 0);

  std::vector<std::string> settings = {
      "model.from=hf:" + squares,
      "edges.vision.language.through.weights=hf:" + squares,
      "data.train=" + std::filesystem::absolute("tests/oracle/tiled_rows.json").string(),
      "data.image_fit=anyres",
      "modules.language.context=256",
      "edges.vision.language.through.hidden=64",
      "run.steps=2"};
  const Outcome checked = RunTroupe(folder.Arguments("check", "configs/shapes.toml", settings));
  INFO(checked.err);
  CHECK_THAT(checked.out, Contains("vision_to_language.image_newline starts from random values: "
                                   "the projector's folder has none"));
  std::vector<std::vector<double>> losses;
  for (const char* const processes : {"1", "8"}) {
    std::vector<std::string> arguments = folder.Arguments("train", "configs/shapes.toml", settings);
    arguments.insert(arguments.end(), {"--local", processes});
    const Outcome trained = RunTroupe(arguments);
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
    losses.push_back(Losses(Newest(folder)));
  }
  REQUIRE(losses[0].size() == 2);
  CHECK(losses[1][0] == Approx(losses[0][0]).epsilon(1e-6));
  CHECK(losses[1][1] == Approx(losses[0][1]).epsilon(1e-5));

  const std::vector<std::string> question = {"--image", kImage, "--prompt", "What?"};
  const auto ask = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "generate");
    arguments.insert(arguments.end(), question.begin(), question.end());
    const Outcome answered = RunTroupe(arguments);
    INFO(answered.err);
    CHECK(answered.exit_code == 0);
    return answered.out;
  };
  const std::string answer = ask({Newest(folder), "--max-new-tokens", "5"});
  const Outcome exported = RunTroupe({"export", Newest(folder), "--out", tiles});
  CHECK_THAT(exported.out, Contains("LlavaNextForConditionalGeneration, "));
  CHECK(ask({tiles, "--tokenizer", "bytes", "--format", "lines", "--max-new-tokens", "5"}) ==
        answer);
  const auto processor = [](const std::string& model) {
    return nlohmann::json::parse(BytesOf(model + "/processor_config.json"))["processor_class"];
  };
  CHECK(processor(squares) == "LlavaProcessor");
  CHECK(processor(tiles) == "LlavaNextProcessor");

  settings[0] = "model.from=hf:" + tiles;
  settings[1] = "edges.vision.language.through.weights=hf:" + tiles;
  settings[3] = "data.image_fit=pad";
  REQUIRE(folder.Train(settings).exit_code == 0);
  const Outcome back = RunTroupe({"export", Newest(folder), "--out", folder / "back"});
  CHECK_THAT(back.out, Contains("LlavaForConditionalGeneration, "));
  CHECK(processor(folder / "back") == "LlavaProcessor");
}

}  // namespace
}  // namespace troupe
