// What the world does to a run that has started: full disks, divergence, Ctrl-C.
#include <catch2/catch.hpp>

#include "checkpoint/safetensors.hpp"
#include "tests/cli/run_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

/// The last line; at most a line on how to resume comes before it.
std::string CauseOf(const Outcome& outcome) {
  INFO(outcome.out << outcome.err);
  REQUIRE(!outcome.timed_out);
  CHECK(outcome.exit_code == 1);
  const auto lines = LinesOf(outcome.err);
  REQUIRE(!lines.empty());
  CHECK(lines.size() <= 2);
  return lines.back();
}

ProcessOptions DiskOf(std::size_t bytes) {
  ProcessOptions options;
  options.max_file_bytes = bytes;
  return options;
}

}  // namespace

TEST_CASE("a run directory that cannot be made is named", "[cli]") {
  const RunFolder folder;
  CHECK(CauseOf(folder.Train({"run.dir=" + (folder / "train.json/runs")})) ==
        "troupe: " + (folder / "train.json/runs") +
            ": cannot create: Not a directory; choose another with --set run.dir=DIR");
  const std::string long_name = folder / std::string(300, 'x');
  CHECK(CauseOf(folder.Train({"run.dir=" + long_name})) ==
        "troupe: " + long_name +
            ": cannot create: File name too long; choose another with --set run.dir=DIR");
}

TEST_CASE("a disk without room for the configuration stops the run before it starts", "[cli]") {
  const RunFolder folder;
  CHECK_THAT(CauseOf(folder.Train({}, DiskOf(500))),
             Contains("/resolved.toml.tmp: cannot write: File too large"));
  CHECK(folder.Runs().empty());
}

TEST_CASE("a disk that fills up with metrics ends the run and names the file", "[cli]") {
  const RunFolder folder;
  const Outcome outcome = folder.Train({"run.steps=40", "trace.messages=false"}, DiskOf(4000));
  CHECK_THAT(
      CauseOf(outcome),
      EndsWith("/metrics.jsonl: cannot write: File too large; is there a limit (ulimit -f)?"));
  CHECK_THAT(outcome.out, !Contains("step 40/40"));
}

TEST_CASE("a disk without room for the weights names the file and leaves no part of it", "[cli]") {
  const RunFolder folder;
  CHECK_THAT(
      CauseOf(folder.Train({"trace.messages=false"}, DiskOf(100000))),
      EndsWith(
          "/weights.safetensors.tmp: cannot write: File too large; is there a limit (ulimit -f)?"));
  REQUIRE(folder.Runs().size() == 1);
  CHECK(!std::filesystem::exists(folder.Runs()[0] + "/weights.safetensors"));
  CHECK(!std::filesystem::exists(folder.Runs()[0] + "/weights.safetensors.tmp"));
  CHECK(std::filesystem::exists(folder.Runs()[0] + "/metrics.jsonl"));
}

TEST_CASE("a disk without room for the trace stops the run before it starts", "[cli]") {
  const RunFolder folder;
  const Outcome outcome = folder.Train({"run.steps=60", "trace.buffer_mib=2"}, DiskOf(1500000));
  CHECK_THAT(CauseOf(outcome), StartsWith("troupe: cannot start: " + (folder / "runs/shapes-")) &&
                                   Contains("/trace/n0.trace: cannot reserve ") &&
                                   EndsWith(" MiB: File too large (see trace.buffer_mib)"));
  CHECK_THAT(outcome.out, !Contains("step 1/"));
  CHECK_THAT(outcome.err, StartsWith("removed " + (folder / "runs/shapes-")) ||
                              Contains("\nremoved " + (folder / "runs/shapes-")));
  CHECK(folder.Runs().empty());
  CHECK_FALSE(std::filesystem::is_symlink(folder / "runs/latest"));
}

TEST_CASE("a backend that cannot run here is refused before anything is made", "[cli]") {
  const RunFolder folder;
  const Outcome outcome = folder.Train({"cluster.backend=\"cuda\"", "cluster.ranks_per_gpu=8"});
  REQUIRE(!outcome.timed_out);
  // A build for GPUs starts and finds none; where there is one it trains, and this is no test of
  // it.
  if (outcome.exit_code == 0) return;
  INFO(outcome.out << outcome.err);
  CHECK_THAT(outcome.err, Contains("cluster.backend = \"cuda\": "));
  if (outcome.exit_code == 2)
    CHECK_THAT(outcome.err, StartsWith("--set cluster.backend=\"cuda\": "));
  CHECK_THAT(outcome.err, Contains("libtorch computes on the CPU only") ||
                              Contains("has no GPU code") || Contains("found 0"));
  if (outcome.exit_code == 2) CHECK(folder.Runs().empty());
}

TEST_CASE("a run that diverges stops at the stage and microbatch where it shows", "[cli]") {
  const RunFolder folder;
  const Outcome outcome =
      folder.Train({"run.steps=60", "optimizer.learning_rate=1e30", "optimizer.warmup_steps=0"});
  const std::string cause = CauseOf(outcome);
  CHECK_THAT(cause, StartsWith("troupe: language.s0 dp0 ") &&
                        Contains(" of step 2 mb 0 (sample a): output 0 is not finite: "));
}

TEST_CASE("Ctrl-C ends a run after its step, and its result is printed", "[cli]") {
  const RunFolder folder;
  ProcessOptions options;
  options.interrupt_at = "step 2/";
  const Outcome outcome =
      folder.Train({"run.steps=100000", "data.held_out=" + (folder / "train.json")}, options);
  INFO(outcome.out);
  CHECK(!outcome.timed_out);
  CHECK(outcome.exit_code == 130);
  CHECK(outcome.seconds < 30);
  CHECK_THAT(outcome.out, Contains("\ninterrupted after step ") && Contains(" of 100000, ") &&
                              Contains("\nheld out after 0 steps: ") && !Contains("\ntrained ") &&
                              Contains("trace/, weights.safetensors (96 tensors), "
                                       "checkpoints/\n"));
  const SafetensorsReader weights(folder.Runs().at(0) + "/weights.safetensors");
  CHECK(weights.metadata().at("steps") != "100000");
}

}  // namespace troupe
