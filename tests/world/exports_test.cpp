// An export is whole or absent after a loss of power at any call of the system.
#include <fstream>
#include <iterator>

#include <catch2/catch.hpp>

#include "checkpoint/export.hpp"
#include "checkpoint/safetensors.hpp"
#include "tests/checkpoint/temporary_directory.hpp"
#include "tests/world/recorded_disk.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using testing::CrashedDisk;
using testing::DiskCall;
using testing::RecordedDisk;

const std::vector<std::string> kFolders = {"vision", "language"};

ExportPlan PlanOf(double value) {
  ExportPlan plan;
  for (const std::string& name : kFolders) {
    ExportedFolder folder;
    folder.name = name;
    folder.config_json = "{\"of\": \"" + name + "\"}\n";
    for (const std::string file : {"a.safetensors", "b.safetensors"}) {
      ExportedTensor tensor;
      tensor.name = "t";
      tensor.shape = {16, 4};
      tensor.constant = value;
      folder.files.push_back({file, {tensor}});
    }
    plan.folders.push_back(std::move(folder));
  }
  return plan;
}

/// Throws if a file is not there or not whole.
void RequireWhole(const std::string& out, double value) {
  for (const std::string& name : kFolders) {
    for (const std::string file : {"a.safetensors", "b.safetensors"}) {
      const Buffer read = SafetensorsReader(out + "/" + name + "/" + file).Read("t");
      for (std::int64_t i = 0; i < read.num_elements(); ++i) {
        if (static_cast<double>(read.as<float>()[i]) != value) throw std::runtime_error("values");
      }
    }
    std::ifstream config(out + "/" + name + "/config.json");
    const std::string text{std::istreambuf_iterator<char>(config), {}};
    if (text != "{\"of\": \"" + name + "\"}\n") throw std::runtime_error(name + ": config.json");
  }
}

/// Returns what is wrong; "" if nothing is.
std::string Export(std::uint64_t seed, bool flushes_folders) {
  std::mt19937_64 random(seed);
  const TemporaryDirectory scratch("/dev/shm");
  const std::string before = scratch.File("before");
  fs::create_directories(before + "/exports");
  if (random() % 2 == 0)
    fs::create_directories(before + "/exports/out");  // an empty one is replaced
  std::vector<DiskCall> calls;
  testing::DiskTree tree;
  {
    RecordedDisk disk(before);
    disk.forgets_folder_flushes = !flushes_folders;
    WriteExport(PlanOf(3.0), SavedParameters(), before + "/exports/out", [](const auto&, auto) {});
    disk.Mark(1);
    calls = disk.calls();
    tree = disk.before();
  }
  const std::size_t count = random() % (calls.size() + 1);
  CrashedDisk(tree, calls, count, random).WriteTo(scratch.File("after"));
  const std::string out = scratch.File("after/exports/out");
  const bool absent = !fs::exists(out) || fs::is_empty(out);
  if (absent) return count == calls.size() ? "it was reported, and is absent" : "";
  try {
    RequireWhole(out, 3.0);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an export outlives the loss of power, or is absent") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    REQUIRE(Export(seed, true).empty());
  }
  bool found = false;
  for (std::uint64_t seed = 0; seed < 1000 && !found; ++seed) found = !Export(seed, false).empty();
  CHECK(found);
}

}  // namespace troupe
