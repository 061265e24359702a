#include <catch2/catch.hpp>

#include "tests/cli/process.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

/// The one line that a wrong command line is answered with, and where to look.
void RequireRefused(const std::vector<std::string>& arguments, const std::string& line) {
  const Outcome outcome = RunTroupe(arguments);
  INFO(outcome.err);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out == "");
  REQUIRE(!LinesOf(outcome.err).empty());
  CHECK_THAT(LinesOf(outcome.err).front(), StartsWith(line));
}

}  // namespace

TEST_CASE("every verb's help names its options and exit codes", "[cli]") {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> verbs = {
      {{"train"}, {"CONFIG", "--set", "--local", "--restarts"}},
      {{"check"}, {"CONFIG", "--set", "--explain", "--print-config"}},
      {{"verify"}, {"CONFIG", "--set", "--steps", "--dtype", "--local", "3 a process was lost"}},
      {{"node"}, {"CONFIG", "--set", "--node", "--join", "--key-file", "--restarts"}},
      {{"doctor"}, {"CONFIG", "--set", "--node", "--join", "--key-file", "--local"}},
      {{"key"}, {"FILE"}},
      {{"data"}, {"check"}},
      {{"data", "check"}, {"FILE", "--set", "--quick"}},
      {{"version"}, {}}};
  for (auto [arguments, options] : verbs) {
    arguments.push_back("--help");
    const Outcome outcome = RunTroupe(arguments);
    CHECK(outcome.exit_code == 0);
    for (const std::string& option : options) CHECK_THAT(outcome.out, Contains(option));
    CHECK_THAT(outcome.out, Contains("Exit code: "));
  }
}

TEST_CASE("the options of verify are not said to be those of verify", "[cli]") {
  CHECK_THAT(RunTroupe({"verify", "--help"}).out, !Contains("verify: "));
}

TEST_CASE("help is another word for --help", "[cli]") {
  CHECK(RunTroupe({"help"}).out == RunTroupe({"--help"}).out);
  CHECK(RunTroupe({"help", "train"}).out == RunTroupe({"train", "--help"}).out);
  CHECK(RunTroupe({"help", "data", "check"}).out == RunTroupe({"data", "check", "--help"}).out);
  CHECK(RunTroupe({"help", "train"}).exit_code == 0);
  RequireRefused({"help", "trian"}, "troupe: \"trian\": unknown verb; did you mean train?");
}

TEST_CASE("the help of the program names every verb and a way to start", "[cli]") {
  const Outcome asked = RunTroupe({"--help"});
  CHECK(asked.exit_code == 0);
  for (const char* text :
       {"train ", "check ", "verify ", "node ", "doctor ", "key ", "data ", "version ", kShapes}) {
    CHECK_THAT(asked.out, Contains(text));
  }
  const Outcome alone = RunTroupe({});
  CHECK(alone.exit_code == 2);
  CHECK(alone.err == asked.out);
  const Outcome inner = RunTroupe({"data"});
  CHECK(inner.exit_code == 2);
  CHECK_THAT(inner.err, Contains("check "));
}

TEST_CASE("a verb that is not known is named, with the nearest that is", "[cli]") {
  RequireRefused({"trian", kShapes}, "troupe: \"trian\": unknown verb; did you mean train?");
  RequireRefused({"deploy"}, "troupe: \"deploy\": unknown verb; expected \"train\", \"check\"");
}

TEST_CASE("an argument that is missing or not known is named", "[cli]") {
  RequireRefused({"train"}, "troupe: CONFIG is required");
  RequireRefused({"verify", kShapes, "--dtype", "half"},
                 "troupe: --dtype: expected float32, float64 or bfloat16, got \"half\"");
  RequireRefused({"data", "check"}, "troupe: FILE is required");
}

TEST_CASE("a configuration of two nodes is not trained in one process without being asked",
          "[cli]") {
  RequireRefused({"train", "configs/shapes_2node.toml"},
                 "troupe: configs/shapes_2node.toml plans 2 nodes (n0, n1): run `troupe node "
                 "configs/shapes_2node.toml` on each, or try it here with --local 2");
}

TEST_CASE("an option that is not known is named, with the one that may be meant", "[cli]") {
  RequireRefused({"train", kShapes, "--lokal", "2"},
                 "troupe: \"--lokal\": unknown option of train; did you mean --local?");
  RequireRefused({"train", "--restart=2", kShapes},
                 "troupe: \"--restart\": unknown option of train; did you mean --restarts?");
  RequireRefused({"node", "--key", "run.key", kShapes},
                 "troupe: \"--key\": unknown option of node; did you mean --key-file?");
  RequireRefused({"data", "check", "--quik"},
                 "troupe: \"--quik\": unknown option of data check; did you mean --quick?");
  RequireRefused({"train", "--banana"}, "troupe: \"--banana\": unknown option of train");
  RequireRefused({"--banana"}, "troupe: \"--banana\": unknown option");
  RequireRefused({"train", kShapes, "more"}, "troupe: \"more\": one argument too many for train");
}

TEST_CASE("keys among the arguments are answered with --set", "[cli]") {
  RequireRefused({"train", kShapes, "run.steps=5"},
                 "troupe: \"run.steps=5\": one argument too many for train; did you mean --set "
                 "run.steps=5?");
  RequireRefused({"train", kShapes, "--steps", "5"},
                 "troupe: \"--steps\": unknown option of train; did you mean --set run.steps=5?");
  RequireRefused({"train", "--lr=1e-4", kShapes},
                 "troupe: \"--lr\": unknown option of train; did you mean --set "
                 "optimizer.learning_rate=1e-4?");
  RequireRefused({"check", kShapes, "--global-batch-size", "64"},
                 "troupe: \"--global-batch-size\": unknown option of check; did you mean --set "
                 "schedule.global_batch=64?");
}

TEST_CASE("verbs within verbs have their nearest, too", "[cli]") {
  RequireRefused({"bench", "schedule"},
                 "troupe: \"schedule\": unknown verb of bench; did you mean schedules?");
  RequireRefused({"bench", "deploy"}, "troupe: \"deploy\": unknown verb of bench; expected ");
  RequireRefused({"data", "chek"}, "troupe: \"chek\": unknown verb of data; did you mean check?");
  RequireRefused({"trace", "sumary"},
                 "troupe: \"sumary\": unknown verb of trace; did you mean summary?");
  RequireRefused({"schedule", "draw"}, "troupe: \"draw\": unknown verb of schedule; expected ");
}

TEST_CASE("--version is another word for version", "[cli]") {
  const Outcome outcome = RunTroupe({"--version"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.out == RunTroupe({"version"}).out);
}

TEST_CASE("a number out of its bounds is answered with them", "[cli]") {
  for (const char* wrong : {"-1", "1.5", "many"}) {
    const std::string answer =
        "troupe: --restarts: expected a whole number from 0 on, got \"" + std::string(wrong) + "\"";
    RequireRefused({"train", kShapes, "--restarts", wrong}, answer);
    RequireRefused({"node", kShapes, "--restarts", wrong}, answer);
  }
  for (const char* verb : {"train", "verify", "doctor"}) {
    RequireRefused({verb, kShapes, "--local", "0"},
                   "troupe: --local: expected a whole number from 1 to 256, got \"0\"");
  }
  RequireRefused({"verify", kShapes, "--steps", "0"},
                 "troupe: --steps: expected a whole number from 1 on, got \"0\"");
  RequireRefused({"train", kShapes, "--local", "3"},
                 "troupe: --local: expected 1, 2, 4 or 8 local processes for cluster.ranks = 8, "
                 "got 3");
}

TEST_CASE("a wrong --set is answered with itself and what was expected", "[cli]") {
  RequireRefused({"check", kShapes, "--set", "foo"}, "--set foo: expected KEY=VALUE");
  RequireRefused({"check", kShapes, "--set", "run.step=3"},
                 "--set run.step=3: run.step: unknown key; did you mean \"steps\"?");
  RequireRefused({"check", kShapes, "--set", "run.steps=abc"},
                 "--set run.steps=abc: run.steps: expected a whole number");
  RequireRefused({"check", kShapes, "--set", "run.steps="},
                 "--set run.steps=: run.steps: expected a whole number");
  RequireRefused({"check", kShapes, "--set"}, "troupe: --set");
}

TEST_CASE("check --explain says what a key is and which line says so", "[cli]") {
  const Outcome file = RunTroupe({"check", kShapes, "--explain", "modules.vision.layout.dp"});
  CHECK(file.exit_code == 0);
  CHECK_THAT(file.out, StartsWith("modules.vision.layout.dp = 4\n"));
  CHECK_THAT(file.out, Contains("configs/shapes.toml:"));
  const Outcome set =
      RunTroupe({"check", kShapes, "--set", "run.steps=9", "--explain", "run.steps"});
  CHECK_THAT(set.out,
             StartsWith("run.steps = 9\n  --set run.steps=9\n  overrides configs/shapes.toml:"));
  RequireRefused({"check", kShapes, "--explain", "modules.vision.layout.dq"},
                 "modules.vision.layout.dq: unknown key; did you mean modules.vision.layout.dp?");
}

TEST_CASE("what check --print-config prints is a configuration with the same values", "[cli]") {
  const ScratchFolder folder;
  for (const char* name : {"shapes", "shapes_colocated", "shapes_inline", "shapes_mixed"}) {
    const Outcome first =
        RunTroupe({"check", "configs/" + std::string(name) + ".toml", "--print-config"});
    REQUIRE(first.exit_code == 0);
    const Outcome again =
        RunTroupe({"check", folder.Write("printed.toml", first.out), "--print-config"});
    INFO(again.err);
    CHECK(again.out == first.out);
  }
}

TEST_CASE("check says where every module, stage and row goes", "[cli]") {
  const Outcome outcome = RunTroupe({"check", kShapes});
  WARN("check took " << outcome.seconds << " s");
  CHECK(outcome.exit_code == 0);
  for (const char* text : {"vision    vit    dp4      4-7", "language.s1", "to sink",
                           "vision>language  disjoint, dp 4 -> 1", "on the fullest rank"}) {
    CHECK_THAT(outcome.out, Contains(text));
  }
}

TEST_CASE("check shows the job that goes on without a node", "[cli]") {
  const auto check = [](const std::string& lost) {
    return RunTroupe({"check", kShapes, "--set", "cluster.nodes=4", "--set",
                      "cluster.processes=device", "--lost", lost});
  };
  const Outcome node = check("n2");
  CHECK(node.exit_code == 0);
  CHECK_THAT(node.out, Catch::StartsWith("without n2: 6 of 8 ranks, vision dp 2 of 4\n") &&
                           Contains("n3.d1    5      vision.s0"));
  // A node with a process less has no ranks.
  CHECK_THAT(check("n2.d0").out, Catch::StartsWith("without n2.d0: 6 of 8 ranks"));
  CHECK_THAT(check("n0").err, Contains("no job goes on without n0.d0, its process 0"));
  CHECK_THAT(check("n4").err, Contains("--lost: the job has no process or node n4"));
  CHECK(check("n4").exit_code == 2);
}

TEST_CASE("check says which ranks are on which GPU of which node, and their sum", "[cli]") {
  const std::vector<std::string> shared = {"check", "configs/shapes_2node.toml",
                                           "--set", "cluster.backend=cuda",
                                           "--set", "cluster.ranks_per_gpu=3"};
  const Outcome outcome = RunTroupe(shared);
  CHECK(outcome.exit_code == 0);
  const auto table = outcome.out.substr(outcome.out.find("node  GPU"));
  CHECK_THAT(table, StartsWith("node  GPU  ranks         estimated\n"
                               "n0    0    0-2 share it  ") &&
                        Contains("\nn0    1    3             ") &&
                        Contains("\nn1    0    4-6 share it  ") &&
                        Contains("\nn1    1    7             "));
  CHECK_THAT(RunTroupe({"check", kShapes}).out, !Contains("GPU"));
}

TEST_CASE("check says which ranks divide the states of experts and of the rest", "[cli]") {
  const Outcome outcome = RunTroupe({"check", "configs/shapes_experts.toml", "--set",
                                     "modules.language.layout={tp=2,cp=1,dp=1,ep=1,pp=2}"});
  CHECK_THAT(outcome.out, EndsWith("optimizer state of vision: divided by 4 ranks\n"
                                   "optimizer state of language: not divided\n"
                                   "optimizer state of language's experts: divided by 2 ranks\n"));
}

TEST_CASE("check says of state that is offloaded whether it saves anything", "[cli]") {
  const auto with = [](const std::string& ahead) {
    return RunTroupe({"check", "configs/shapes_colocated.toml", "--set",
                      "modules.vision.offload=state", "--set",
                      "modules.vision.offload_ahead=" + ahead})
        .out;
  };
  CHECK_THAT(with("0"), Contains("on each of its ranks, to host memory\nwith that ") &&
                            !Contains("nothing is saved"));
  CHECK_THAT(with("50"), Contains("with that still ") && Contains("so nothing is saved\n"));
}

TEST_CASE("a key that has no effect is warned of, and its place is said", "[cli]") {
  const Outcome outcome = RunTroupe({"check", kShapes, "--set", "run.tf32=true"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.err,
             StartsWith("troupe: warning: --set run.tf32=true: run.tf32: has no effect with "));
}

TEST_CASE("version says whether this build can use GPUs", "[cli]") {
  const Outcome outcome = RunTroupe({"version"});
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, StartsWith("troupe ") && Contains("\nGPU parts: ") &&
                              Contains("\nbackend \"cuda\": "));
}

}  // namespace troupe
