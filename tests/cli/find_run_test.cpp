// The shorter names of a run directory.
#include <filesystem>

#include <catch2/catch.hpp>

#include "app/run_directory.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// A working directory with runs of one step in it.
class Runs {
 public:
  Runs() { fs::create_directory(folder_ / "runs"); }

  Outcome Troupe(const std::vector<std::string>& arguments) const {
    ProcessOptions options;
    options.working_directory = folder_.path();
    return RunTroupe(arguments, options);
  }
  /// The directory of the run it leaves.
  std::string Train(const std::string& name) const {
    const Outcome outcome = Troupe({"train", fs::absolute("configs/synthetic_chain.toml").string(),
                                    "--set", "run.steps=1", "--set", "run.name=" + name});
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return fs::read_symlink(folder_ / "runs/latest").string();
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  ScratchFolder folder_;
};

}  // namespace

TEST_CASE("runs/latest leads to the newest run, and a name to the newest of that name", "[cli]") {
  const Runs runs;
  const std::string first = runs.Train("one");
  const std::string other = runs.Train("other");
  const std::string second = runs.Train("one");
  CHECK(first != second);
  CHECK_THAT(second, Catch::StartsWith("one-"));
  fs::create_directory(runs / "runs/one-more-20990101-000000");  // of another name
  const auto shown = [&](const std::string& run) {
    const Outcome outcome = runs.Troupe({"top", run, "--once"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    return outcome.out.substr(0, outcome.out.find(':'));
  };
  CHECK(shown("runs/latest") == "runs/" + second);
  CHECK(shown("latest") == "runs/" + second);
  CHECK(shown("one") == "runs/" + second);
  CHECK(shown("other") == "runs/" + other);
  CHECK(shown("runs/" + first) == "runs/" + first);
  CHECK(runs.Troupe({"trace", "summary", "other"}).exit_code == 0);
  CHECK(runs.Troupe({"trace", "diff", "other", "latest"}).exit_code == 0);
  const Outcome none = runs.Troupe({"trace", "summary", "neither"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Catch::Contains("neither: expected a run directory, found none"));
}

TEST_CASE("what is called latest and is no link stays as it is", "[cli]") {
  const ScratchFolder folder;
  fs::create_directories(folder / "run");
  fs::create_directories(folder / "latest");
  LinkLatest(folder / "run");
  CHECK_FALSE(fs::is_symlink(folder / "latest"));
  fs::remove(folder / "latest");
  fs::create_directories(folder / "other");
  LinkLatest(folder / "run");
  LinkLatest(folder / "other/");
  CHECK(fs::read_symlink(folder / "latest") == "other");
  // By its own link the run is linked as what it is.
  LinkLatest(folder / "latest");
  CHECK(fs::read_symlink(folder / "latest") == "other");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 3);
}

}  // namespace troupe
