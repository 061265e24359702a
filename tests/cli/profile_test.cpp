// `troupe profile` from the outside.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;

nlohmann::json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("a profile has the rates of every module, and plans use it", "[cli]") {
  const ScratchFolder folder;
  const std::string here = folder / "here.json";
  const Outcome profiled =
      RunTroupe({"profile", "configs/shapes.toml", "--seconds", "5", "--out", here});
  INFO(profiled.out << profiled.err);
  REQUIRE(profiled.exit_code == 0);
  CHECK_THAT(profiled.out, Contains("\nlanguage ") && Contains("\nvision "));
  CHECK_THAT(profiled.out, Contains("wrote " + here));
  const nlohmann::json file = ReadJson(here);
  CHECK(file["precision"] == "float32");
  CHECK(file["conditions"]["configuration"] == "shapes");
  CHECK(file["passes"].size() > 8);
  for (const char* name : {"vision", "language"}) {
    INFO(name);
    const nlohmann::json& module = file["modules"][name];
    double rates = 0.0;
    for (const auto& [key, rate] : module["forward"].items()) {
      CHECK(rate.get<double>() >= 0.0);
      rates += rate.get<double>();
    }
    CHECK(rates > 0.0);
    CHECK(module["largest_flops"].get<double>() > 1e6);
  }
  const Outcome planned =
      RunTroupe({"plan", "configs/shapes.toml", "--gpus", "4", "--device", here, "--top", "1"});
  INFO(planned.out << planned.err);
  CHECK(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains("measured on ") && Contains("  -  "));
  const Outcome share = RunTroupe({"plan", "configs/shapes.toml", "--gpus", "4", "--device", here,
                                   "--top", "1", "--set", "cluster.peak_tflops=1"});
  CHECK(share.exit_code == 0);
  CHECK_THAT(share.out, Contains("  MFU  ") && !Contains("  -  "));

  const Outcome other = RunTroupe(
      {"plan", "configs/shapes.toml", "--device", here, "--set", "run.precision=\"bfloat16\""});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, Contains("measured with precision \"float32\", and this is a run of "
                                 "\"bfloat16\""));
}

TEST_CASE("a profile needs modules that compute, and a place to write to", "[cli]") {
  const ScratchFolder folder;
  const std::string out = folder / "here.json";
  const Outcome stated =
      RunTroupe({"profile", "configs/synthetic_chain.toml", "--seconds", "5", "--out", out});
  CHECK(stated.exit_code == 2);
  CHECK_THAT(stated.err, Contains("states its times; expected modules that compute"));
  const Outcome nowhere = RunTroupe(
      {"profile", "configs/shapes.toml", "--seconds", "5", "--out", folder / "missing/here.json"});
  CHECK(nowhere.exit_code == 1);
  CHECK_THAT(nowhere.err, Contains("missing/here.json") && !Contains("sample"));
  for (const auto& [path, got] :
       {std::pair(std::string(), std::string("\"\"")),
        std::pair(folder.path(), "the folder \"" + folder.path() + "\"")}) {
    const Outcome wrong = RunTroupe({"profile", "configs/shapes.toml", "--out", path});
    CHECK(wrong.exit_code == 2);
    CHECK_THAT(wrong.err, Contains("--out: expected a file, got " + got));
  }
}

TEST_CASE("a measurement that is interrupted leaves no files", "[cli]") {
  const ScratchFolder folder;
  const std::string out = folder / "here.json";
  const std::vector<std::vector<std::string>> verbs = {
      {"profile", "configs/shapes.toml", "--out", out},
      {"bench", "layouts", "configs/shapes.toml", "--measure"}};
  const std::string temporary = folder / "temporary";
  std::filesystem::create_directory(temporary);
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  for (const auto& verb : verbs) {
    ProcessOptions options;
    options.interrupt_again_at = " probes, about ";
    setenv("TMPDIR", temporary.c_str(), 1);
    const Outcome outcome = RunTroupe(verb, options);
    before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 128 + SIGINT);
    CHECK(!std::filesystem::exists(out));
    CHECK(std::filesystem::is_empty(temporary));
  }
}

}  // namespace troupe
