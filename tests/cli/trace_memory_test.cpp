// How much memory a run had in use is in its trace, and in whatever is made of it.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "tests/cli/run_folder.hpp"
#include "tests/cli/trace_output.hpp"
#include "tests/trace/export/lint/perfetto_file.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

/// What the console said, by metrics.jsonl: the process's resident bytes after each step.
std::vector<std::int64_t> LoggedMemory(const std::string& run) {
  std::ifstream file(run + "/metrics.jsonl");
  std::vector<std::int64_t> bytes;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["kind"] == "step") bytes.push_back(json["memory_bytes"]);
  }
  return bytes;
}

}  // namespace

TEST_CASE("the memory of a run is in what is said and exported of it, in bytes", "[cli]") {
  const RunFolder folder;
  REQUIRE(folder.Train({"run.steps=4"}).exit_code == 0);
  const std::string run = folder.Runs().at(0);
  const auto rows =
      nlohmann::json::parse(Printed({"sql", run, "select memory_bytes m from work order by m",
                                     "--format", "json", "--limit", "0"}));
  REQUIRE(rows.size() > 100);
  const std::int64_t least = rows.front()["m"];
  const std::int64_t most = rows.back()["m"];
  const std::vector<std::int64_t> logged = LoggedMemory(run);
  REQUIRE(logged.size() == 4);
  // Both are resident bytes of the same process, looked up at different moments.
  const double slack = 64 << 20;
  CHECK(static_cast<double>(most) == Approx(static_cast<double>(logged.back())).margin(slack));
  CHECK(least > 16 << 20);
  CHECK_THAT(Printed({"summary", run}),
             Catch::Contains("most memory") && Catch::Contains(Bytes(most)));

  const std::string file = folder / "out.pftrace";
  Printed({"export", run, "--out", file});
  std::int64_t exported = 0;
  const PerfettoFile read = ReadPerfetto(ContentOf(file));
  for (const auto& [at_ns, bytes] : read.counters.at("/n0/memory")) {
    CHECK(bytes >= least);
    CHECK(bytes <= most);
    exported = std::max(exported, bytes);
  }
  CHECK(exported == most);
  CHECK_THAT(Linted(file), Catch::Contains("nothing an importer"));
}

}  // namespace troupe
