#include "app/run_directory.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Run directories as they are before the first step.
class Runs {
 public:
  std::string Make(const std::string& name) const {
    fs::create_directories(folder_ / (name + "/trace"));
    folder_.Write(name + "/resolved.toml", "schema = 1\n");
    folder_.Write(name + "/metrics.jsonl", "");
    LinkLatest(folder_ / name);
    return folder_ / name;
  }
  void Write(const std::string& name) const { folder_.Write(name, "something"); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  ScratchFolder folder_;
};

}  // namespace

TEST_CASE("a run directory without a step is removed, and latest leads to the one before",
          "[cli]") {
  const Runs runs;
  const std::string first = runs.Make("a-20260101-000000");
  const std::string second = runs.Make("b-20260102-000000");
  CHECK(RemoveUnused(second) == "removed " + second + ": no step was finished\n");
  CHECK_FALSE(fs::exists(second));
  CHECK(fs::read_symlink(runs / "latest") == "a-20260101-000000");
  runs.Write("a-20260101-000000/trace/cause.txt");  // was printed
  CHECK_FALSE(RemoveUnused(first).empty());
  CHECK_FALSE(fs::is_symlink(runs / "latest"));
  CHECK(RemoveUnused(first).empty());
}

TEST_CASE("a run directory that holds anything of a run stays", "[cli]") {
  for (const char* name : {"metrics.jsonl", "trace/n0.trace", "weights.safetensors", "notes"}) {
    const Runs runs;
    const std::string run = runs.Make("a-20260101-000000");
    runs.Write(std::string("a-20260101-000000/") + name);
    CHECK(RemoveUnused(run).empty());
    CHECK(fs::exists(run + "/resolved.toml"));
    CHECK(fs::read_symlink(runs / "latest") == "a-20260101-000000");
  }
}

TEST_CASE("only the run that made a directory calls it new", "[cli]") {
  const Runs runs;
  const std::string run = runs / "runs/again";
  RunConfig config;
  CHECK(RunDirectory(config, "", run).is_new());
  CHECK_FALSE(RunDirectory(config, "", run).is_new());
}

}  // namespace troupe
