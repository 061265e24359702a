// What a layout exports depends on the layout in no bit, and what it imports neither.
#include "checkpoint/export.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/manifest.hpp"
#include "checkpoint/sharded.hpp"
#include "configs/loader.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/torch/oracle.hpp"

namespace troupe::oracle {
namespace {

struct Layouts {
  const char* name;
  Layout vision;
  Layout language;
  ProjectorEnd on = ProjectorEnd::kFrom;
};

const std::vector<Layouts>& SomeLayouts() {
  static const std::vector<Layouts> kLayouts = {
      {"whole", {}, {}},
      {"tp 2 and 4", {.tp = 2}, {.tp = 4}, ProjectorEnd::kTo},
      {"pp 2", {.pp = 2}, {.pp = 2}},
      {"dp 2", {.dp = 2}, {.tp = 2, .dp = 2}},
      {"all", {.tp = 2, .pp = 2, .dp = 2}, {.tp = 2, .pp = 2, .dp = 2}, ProjectorEnd::kTo},
  };
  return kLayouts;
}

Config ConfigOf(const std::string& folder, const Layouts& layouts) {
  Config config = Load("", "cluster.ranks = 2\nmodel.from = \"hf:" + folder +
                               "\"\n[modules.vision]\nranks = \"0\"\n[modules.language]\n"
                               "ranks = \"1\"\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n");
  config.run.precision = Precision::kFloat32;
  SetLayout(config, "vision", layouts.vision);
  SetLayout(config, "language", layouts.language);
  config.edges[0].through->on = layouts.on;
  return config;
}

/// Tensors are the same when they are read some rows at a time.
void CheckBands(const SavedParameters& saved, Job& job) {
  for (const auto& [name, values] : job.Tensors(TensorKind::kParameter)) {
    const Buffer whole = saved.Read(name);
    std::string bytes;
    int num_bands = 0;
    saved.ReadInBands(
        name,
        [&](const Buffer& rows) {
          bytes.append(reinterpret_cast<const char*>(rows.data()), rows.num_bytes());
          ++num_bands;
        },
        11);
    CHECK(bytes == std::string(reinterpret_cast<const char*>(whole.data()), whole.num_bytes()));
    CHECK(num_bands > (values.size() > 40 ? 1 : 0));
  }
}

/// Writes a checkpoint of the job and exports that.
void Export(Job& job, const Config& config, const std::string& checkpoint, const std::string& out) {
  std::vector<WrittenShard> shards;
  for (const ModuleConfig& module : config.modules) {
    for (int dp = 0; dp < module.layout.dp; ++dp) {
      for (int pp = 0; pp < module.layout.pp; ++pp) {
        for (int tp = 0; tp < module.layout.tp; ++tp) {
          const ShardAddress shard{.module = module.name, .pp = pp, .dp = dp, .tp = tp};
          shards.push_back(
              {shard, WriteShard(job.Program(module.name, pp, dp, tp), shard, {checkpoint, 1})});
        }
      }
    }
  }
  WriteManifest(checkpoint, MakeManifest({.step = 1}, shards));
  const auto saved = SavedParameters::OfCheckpoint(checkpoint);
  CheckBands(saved, job);
  WriteExport(PlanExport(config, saved, {.image = 30}), saved, out,
              [](const std::string&, std::uint64_t) {});
}

std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = BytesOf(entry.path().string());
  }
  return files;
}

TEST_CASE("imported in one layout, trained, exported, imported in another: the same bytes",
          "[torch][oracle][export]") {
  const std::string family =
      GENERATE("llava_clip_llama", "llava_siglip_qwen3", "llava_next_clip_llama");
  for (const Layouts& first : SomeLayouts()) {
    const ScratchFolder scratch;
    const Config config = ConfigOf(FolderOf(family), first);
    Job job(config);
    ReadAllWeights(job, config);
    const Inputs whole = MakeInputs(config, {1, 0, 2, 1}, 3);
    std::vector<Inputs> parts = {whole};
    if (first.language.dp == 2) {
      parts = {Slice(config, whole, 0, 2), Slice(config, whole, 2, 4)};
    }
    job.TrainRound({parts}, 0.1);
    job.ReduceGradients();
    job.Update({.step = 1, .clip_coefficient = 1.0, .schedule = 1.0});
    Export(job, config, scratch / "checkpoint", scratch / "first");
    const auto trained = FilesOf(scratch / "first");
    CHECK(trained.at("model.safetensors") != BytesOf(FolderOf(family) + "/model.safetensors"));
    CHECK(trained.at("config.json").size() > 100);
    for (const Layouts& second : SomeLayouts()) {
      INFO(family << ": " << first.name << " to " << second.name);
      const ScratchFolder other;
      const Config again = ConfigOf(scratch / "first", second);
      Job imported(again);
      ReadAllWeights(imported, again);
      Export(imported, again, other / "checkpoint", other / "second");
      const bool same = FilesOf(other / "second") == trained;
      CHECK(same);
    }
  }
}

}  // namespace
}  // namespace troupe::oracle
