// The same numbers in several processes as in one.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

struct Layouts {
  const char* config;
  std::vector<std::string> sets;
};

/// What `troupe verify` proves, in `processes` processes.
void CheckVerified(const Layouts& layout, int processes) {
  std::vector<std::string> arguments = {
      "verify",  layout.config, "--steps", "2",
      "--dtype", "float64",     "--local", std::to_string(processes)};
  for (const std::string& set : layout.sets) {
    arguments.push_back("--set");
    arguments.push_back(set);
  }
  const Outcome outcome = RunTroupe(arguments);
  INFO(layout.config << " in " << processes << " processes\n" << outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out.find("equals the unsharded reference") != std::string::npos);
}

const std::vector<Layouts> kProvedLayouts = {
    {"configs/shapes.toml", {}},
    {"configs/shapes_colocated.toml", {}},
    {"configs/shapes_mixed.toml", {}},
    {"configs/shapes_two_encoders.toml", {}},
    {"configs/shapes_inline.toml", {}},
    {"configs/shapes_frozen.toml", {}},
    {"configs/shapes.toml", {"modules.language.layout={ tp = 1, pp = 4 }"}},
    {"configs/shapes.toml", {"modules.language.layout={ tp = 4, pp = 1 }"}},
    {"configs/shapes.toml", {"modules.language.layout={ dp = 4 }", "schedule.micro_batch_size=2"}},
    {"configs/shapes.toml",
     {"modules.language.layout={ tp = 2, dp = 2 }", "modules.vision.layout={ dp = 2, pp = 2 }",
      "schedule.micro_batch_size=4"}},
    {"configs/shapes.toml",
     {"modules.language.ranks=\"0,2,4,6\"", "modules.vision.ranks=\"1,3,5,7\""}},
    {"configs/shapes_colocated.toml", {"schedule.window=2"}},
    {"configs/shapes.toml",
     {"modules.language.layout={ cp = 2, tp = 2 }", "modules.vision.layout={ cp = 2, dp = 2 }",
      "data.packing=true"}},
    {"configs/shapes_colocated.toml",
     {"modules.language.layout={ cp = 2, tp = 2, dp = 2 }",
      "modules.vision.layout={ cp = 2, dp = 4 }"}},
};

}  // namespace

TEST_CASE("layouts are proved in two and in four processes", "[cli]") {
  CheckVerified(kProvedLayouts[0], 2);
  CheckVerified(kProvedLayouts[1], 4);
  CheckVerified(kProvedLayouts[2], 4);
}

TEST_CASE("twelve layouts are proved in two, four and eight processes", "[cli][.][slow]") {
  for (const Layouts& layout : kProvedLayouts) {
    for (const int processes : {2, 4}) CheckVerified(layout, processes);
    const bool has_8_ranks = std::string(layout.config).find("inline") == std::string::npos;
    if (has_8_ranks) CheckVerified(layout, 8);
  }
}

TEST_CASE("where no sum changes its order, processes do not change a bit", "[cli]") {
  std::vector<std::string> weights;
  for (const char* processes : {"1", "2", "8"}) {
    const ScratchFolder folder;
    const Outcome outcome =
        RunTroupe({"train", "configs/shapes.toml", "--set", "run.steps=3", "--set",
                   "run.dir=" + (folder / "runs"), "--local", processes});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    weights.push_back(BytesOf(folder / "runs/latest/weights.safetensors"));
    REQUIRE(weights.back().size() > 10'000);
  }
  REQUIRE(weights.size() == 3);
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] == weights[2]);
}

TEST_CASE("a job keeps the configuration it was started with when its file changes", "[cli]") {
  const RunFolder folder;
  const std::string config = folder / "run.toml";
  // A key without effect, for a warning that names the file.
  std::ofstream(config) << "extends = [\""
                        << std::filesystem::absolute("configs/shapes.toml").string()
                        << "\"]\n[run]\ntf32 = true\n";
  auto arguments = folder.Arguments("train", config, {"run.steps=30", "checkpoint.every=2"});
  arguments.insert(arguments.end(), {"--local", "2", "--restarts", "1"});
  ProcessOptions options;
  // Before the process that is started again would read it.
  options.call_at = "step 1/";
  options.call = [&](int) { std::ofstream(config) << "this is no TOML\n"; };
  options.kill_child_at = "step 5/";
  const Outcome outcome = RunTroupe(arguments, options);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.find("; starting it again, 1 of 1 times") != std::string::npos);
  CHECK(outcome.out.find("step 30/30") != std::string::npos);
  const std::string remark = "warning: " + config + ":3:8: run.tf32: has no effect";
  const std::size_t warned = outcome.err.find(remark);
  REQUIRE(warned != std::string::npos);
  CHECK(outcome.err.find(remark, warned + 1) == std::string::npos);
}

}  // namespace troupe
