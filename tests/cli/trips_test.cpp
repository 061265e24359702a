// How often a microbatch waits for the network, one time after the other: from the trace.
#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"
#include "tests/cli/trace_output.hpp"

namespace troupe {
namespace {

/// Of a run in several processes: the most ways between them that a message of each of these types
/// took.
std::string TripsOf(int processes, const std::vector<std::string>& settings,
                    const std::string& types) {
  const RunFolder folder;
  auto arguments = folder.Arguments("train", "configs/shapes.toml", settings);
  arguments.insert(arguments.end(), {"--local", std::to_string(processes)});
  const Outcome outcome = RunTroupe(arguments);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return Printed({"sql", folder.Runs().at(0),
                  "select type, max(trips) trips from messages where type in (" + types +
                      ") group by type order by type",
                  "--format", "csv"});
}

}  // namespace

TEST_CASE("a microbatch crosses an edge between processes in one way there and one back", "[cli]") {
  // Asked for, the bytes took two ways more in each direction.
  CHECK(TripsOf(2, {}, "'Slice', 'GradientSlice', 'SliceArrived'") ==
        "type,trips\nGradientSlice,1\nSlice,1\nSliceArrived,0\n");
}

TEST_CASE("a pass of a replica crosses to no other process", "[cli]") {
  // Replicas 2 and 3 of the encoder are not in the process that reduces its gradients.
  CHECK(TripsOf(4, {}, "'RunForward', 'ForwardDone', 'RunBackward', 'BackwardDone'") ==
        "type,trips\nBackwardDone,0\nForwardDone,0\nRunBackward,0\nRunForward,0\n");
}

TEST_CASE("so it does between two stages of a module", "[cli]") {
  CHECK(TripsOf(2, {"modules.language.ranks=\"0,2,4,6\"", "modules.vision.ranks=\"1,3,5,7\""},
                "'Activation', 'Gradient', 'ShardArrived', 'SliceArrived'") ==
        "type,trips\nActivation,1\nGradient,1\nShardArrived,0\nSliceArrived,0\n");
}

}  // namespace troupe
