// A run goes on in every layout from the checkpoint of another, as if it had always had that one.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/saved_state.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Words = std::vector<std::string>;

struct NamedLayout {
  const char* config;
  Words set;
};

/// All with a global batch of 16 samples.
const std::map<std::string, NamedLayout> kLayouts = {
    {"tp2 pp2", {"shapes", {}}},
    {"dp2 tp2", {"shapes", {"modules.language.layout={tp=2, dp=2}"}}},
    {"pp4", {"shapes", {"modules.language.layout={pp=4}", "modules.vision.layout={tp=2, dp=2}"}}},
    {"tp4", {"shapes", {"modules.language.layout={tp=4}", "modules.vision.layout={pp=2, dp=2}"}}},
    {"cp2", {"shapes", {"modules.language.layout={cp=2, dp=2}"}}},
    {"colocated", {"shapes_colocated", {}}},
    {"inline", {"shapes_inline", {}}},
    {"zero",
     {"shapes",
      {"modules.language.layout={pp=2, dp=2}", "optimizer.shard=data", "optimizer.instances=1"}}},
    {"interleaved", {"shapes", {"schedule.kind=interleaved"}}},
    {"zb-h1", {"shapes", {"schedule.kind=zb-h1", "modules.language.layout={pp=2, dp=2}"}}},
};

const std::vector<std::pair<const char*, const char*>> kPairs = {
    {"tp2 pp2", "tp2 pp2"},
    {"tp2 pp2", "dp2 tp2"},
    {"tp2 pp2", "pp4"},
    {"tp2 pp2", "tp4"},
    {"tp2 pp2", "cp2"},
    {"tp2 pp2", "colocated"},
    {"tp2 pp2", "inline"},
    {"tp2 pp2", "zero"},
    {"tp2 pp2", "interleaved"},
    {"tp2 pp2", "zb-h1"},
    {"zero", "zero"},
    {"dp2 tp2", "tp2 pp2"},
    {"pp4", "cp2"},
    {"tp4", "dp2 tp2"},
    {"cp2", "zero"},
    {"colocated", "inline"},
    {"inline", "zero"},
    {"zero", "tp4"},
    {"interleaved", "zb-h1"},
    {"zb-h1", "colocated"},
    {"zero", "interleaved"},
    {"colocated", "colocated"},
};

/// The training losses of a run, by step.
std::map<std::int64_t, double> LossesOf(const std::string& run) {
  std::map<std::int64_t, double> losses;
  std::ifstream file(run + "/metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["kind"] == "step") losses[json["step"]] = json["loss"];
  }
  return losses;
}

double MagnitudeOf(const Buffer& values) {
  double most = 0.0;
  for (std::int64_t i = 0; i < values.num_elements(); ++i) {
    most = std::max(most, std::abs(values.as<double>()[i]));
  }
  return most;
}

/// The largest difference of any parameter or moment after step 10, relative to its tensor's
/// largest magnitude. A key bias has the gradient 0, so all it holds is rounding: it counts with the
/// size of its weight (modules/torch/compare.hpp).
double StateDistance(const std::string& run, const std::string& expected) {
  SavedState a(CheckpointFolder(expected, 10));
  SavedState b(CheckpointFolder(run, 10));
  double worst = 0.0;
  REQUIRE(a.manifest().tensors.size() == b.manifest().tensors.size());
  const auto read = [](SavedState& saved, const std::string& name) {
    const Shape& shape = saved.Find(name)->shape;
    return saved.Read(name, std::vector<std::int64_t>(shape.size(), 0), shape);
  };
  for (const auto& [name, tensor] : a.manifest().tensors) {
    const Buffer first = read(a, name);
    const Buffer second = read(b, name);
    std::string sized = name;
    if (const auto at = name.find("k_proj.bias"); at != name.npos)
      sized.replace(at + 7, 4, "weight");
    const double scale = MagnitudeOf(read(a, sized));
    double most = 0.0;
    for (std::int64_t i = 0; i < first.num_elements(); ++i) {
      most = std::max(most, std::abs(first.as<double>()[i] - second.as<double>()[i]));
    }
    worst = std::max(worst, most / std::max(scale, 1e-300));
  }
  return worst;
}

/// The runs of ten steps, made when they are first asked for.
class Runs {
 public:
  static Words Train(const std::string& layout, const std::string& dir) {
    const NamedLayout& named = kLayouts.at(layout);
    Words words = {"train", std::string("configs/") + named.config + ".toml"};
    for (const char* set :
         {"run.steps=10", "run.evaluate_every=0", "run.precision=float64",
          "data.held_out=", "modules.language.mlp_hidden=64", "modules.vision.mlp_hidden=64",
          "schedule.micro_batch_size=2", "schedule.global_batch=16", "checkpoint.every=5",
          "trace.messages=false"}) {
      words.insert(words.end(), {"--set", set});
    }
    for (const std::string& set : named.set) words.insert(words.end(), {"--set", set});
    words.insert(words.end(), {"--set", "run.dir=" + dir});
    return words;
  }

  std::string Whole(const std::string& layout) {
    const std::string dir = folder_ / layout;
    if (!std::filesystem::exists(dir)) {
      const Outcome outcome = RunTroupe(Train(layout, dir));
      INFO(outcome.out << outcome.err);
      REQUIRE(outcome.exit_code == 0);
    }
    return std::filesystem::canonical(dir + "/latest").string();
  }

  std::string dir(const std::string& name) const { return folder_ / name; }

 private:
  const ScratchFolder folder_;
};

}  // namespace

TEST_CASE("a run goes on in another layout as if it had always had it", "[cli]") {
  Runs runs;
  for (const auto& [from, to] : kPairs) {
    INFO(from << " -> " << to);
    const std::string whole = runs.Whole(to);
    Words words = Runs::Train(to, runs.dir(std::string(from) + " to " + to));
    words.insert(words.end(), {"--from", runs.Whole(from), "--from-step", "5"});
    const Outcome outcome = RunTroupe(words);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const std::string run =
        std::filesystem::canonical(runs.dir(std::string(from) + " to " + to) + "/latest").string();
    const auto losses = LossesOf(run);
    const auto expected = LossesOf(whole);
    REQUIRE(losses.size() == 5);
    for (const auto& [step, loss] : losses) {
      CHECK(std::abs(loss - expected.at(step)) <= 1e-12 * std::abs(expected.at(step)));
    }
    const double distance = StateDistance(run, whole);
    CHECK(distance <= (std::string(from) == to ? 0.0 : 1e-10));
    CHECK(RequireManifest(CheckpointFolder(run, 10)).run.data.place == 160);
  }
}

}  // namespace troupe
