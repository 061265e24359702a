// Adapters beside linear layers, against what PEFT computes with the same folders in float64.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/export.hpp"
#include "checkpoint/export_adapters.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/sharded.hpp"
#include "models/model_folder.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/stage_parts.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/torch/oracle.hpp"

namespace troupe::oracle {
namespace {

constexpr double kExact = 1e-10;

/// A recording of tools/oracle/record_adapters.py.
struct Case {
  std::string name;
  std::string family;
  std::string toml;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> kCases = {
      {"llama", "llama",
       "cluster.ranks = 1\n[modules.language]\nweights = \"hf:FAMILY\"\nranks = \"0\"\n"
       "lora = { rank = 3, alpha = 6, linears = [\"q\", \"k\", \"v\", \"o\", \"gate\", \"up\", "
       "\"down\"] }\n"},
      {"dropout", "llama",
       "cluster.ranks = 1\nrun.seed = 7\n[modules.language]\nweights = \"hf:FAMILY\"\n"
       "ranks = \"0\"\n"
       "lora = { rank = 3, alpha = 6, dropout = 0.25, linears = [\"q\", \"k\", \"v\", \"o\", "
       "\"gate\", \"up\", \"down\"] }\n"},
      {"whole", "llava_clip_qwen3",
       "cluster.ranks = 2\nmodel.from = \"hf:FAMILY\"\n[modules.vision]\nranks = \"0\"\n"
       "lora = { rank = 4, alpha = 2, linears = [\"k\", \"o\", \"fc1\", \"fc2\"] }\n"
       "[modules.language]\nranks = \"1\"\n"
       "lora = { rank = 2, alpha = 3, linears = [\"q\", \"v\", \"down\"] }\n"
       "[[edges]]\nfrom = \"vision\"\nto = \"language\"\n"}};
  return kCases;
}

class Recording {
 public:
  Recording(const Case& one, const Config& config)
      : folder_("tests/oracle/adapters_" + one.name),
        alone_(config.modules.size() == 1),
        start_(folder_ + "/start.safetensors"),
        expected_(folder_ + "/expected.safetensors") {}

  /// The name of the parameter `own` that PEFT uses.
  std::string NameOf(const Config& config, const std::string& own) const {
    const std::string part = own.substr(0, own.find('.'));
    const std::string rest = own.substr(part.size() + 1);
    const ModuleConfig* const module = config.Find(part);
    if (module == nullptr) return "base_model.model.model.multi_modal_projector." + rest;
    const ModuleKind& kind = module->model.kind();
    return "base_model.model." + NameIn(alone_ ? kind.foreign_alone : kind.foreign_in_memory, rest);
  }

  std::vector<double> Start(const std::string& name) const { return Numbers(start_, name); }
  std::vector<double> Expected(const std::string& name) const { return Numbers(expected_, name); }
  const std::string& folder() const { return folder_; }

  static std::vector<double> Numbers(const SafetensorsReader& file, const std::string& name) {
    INFO(name);
    REQUIRE(file.Find(name) != nullptr);
    const Buffer buffer = file.Read(name);
    if (buffer.dtype() == DType::kFloat32) {
      return {buffer.as<float>(), buffer.as<float>() + buffer.num_elements()};
    }
    REQUIRE(buffer.dtype() == DType::kFloat64);
    return {buffer.as<double>(), buffer.as<double>() + buffer.num_elements()};
  }

 private:
  std::string folder_;
  bool alone_;
  SafetensorsReader start_;
  SafetensorsReader expected_;
};

/// Fills what trains in a program with the values at the start of the recording.
void SetStart(StageProgram& program, const Config& config, const Recording& recording) {
  std::vector<TensorPiece> pieces = program.Tensors(TensorKind::kParameter);
  const auto parameters = AllParameters(config);
  for (TensorPiece& piece : pieces) {
    if (parameters.at(piece.name).frozen) continue;
    const std::vector<double> whole = recording.Start(recording.NameOf(config, piece.name));
    REQUIRE(std::ssize(whole) == NumElements(piece.global_shape));
    ForEachRun(piece, [&](std::int64_t first, std::int64_t at, std::int64_t count) {
      std::copy_n(whole.data() + at, count, piece.value.as<double>() + first);
    });
  }
  program.SetTensors(TensorKind::kParameter, pieces);
}

void ForEachProgram(Job& job, const Config& config,
                    const std::function<void(const ShardAddress&, StageProgram&)>& action) {
  for (const ModuleConfig& module : config.modules) {
    if (module.inline_in) continue;
    for (int pp = 0; pp < module.layout.pp; ++pp) {
      for (int tp = 0; tp < module.layout.tp; ++tp) {
        action({.module = module.name, .pp = pp, .tp = tp}, job.Program(module.name, pp, 0, tp));
      }
    }
  }
}

void Start(Job& job, const Config& config, const Recording& recording) {
  ReadAllWeights(job, config);
  ForEachProgram(job, config, [&](const ShardAddress&, StageProgram& program) {
    SetStart(program, config, recording);
  });
}

void SetLayouts(Config& config, const Layout& vision, const Layout& language) {
  if (config.Find("vision") != nullptr) SetLayout(config, "vision", vision);
  SetLayout(config, "language", language);
}

struct Pair {
  Layout vision;
  Layout language;
};

const std::vector<Pair> kPairs = {{{}, {}},
                                  {{.tp = 2}, {.tp = 2}},
                                  {{.tp = 2}, {.tp = 4}},
                                  {{.pp = 2}, {.pp = 2}},
                                  {{.tp = 2, .pp = 2}, {.tp = 4, .pp = 2}}};

TEST_CASE("adapters have the loss and the gradients of PEFT, and train like them",
          "[torch][oracle]") {
  const Case& one = GENERATE(from_range(Cases()));
  Config config = Load(one.family, one.toml);
  const Pair pair = GENERATE(from_range(kPairs));
  SetLayouts(config, pair.vision, pair.language);
  for (ModuleConfig& module : config.modules) {
    module.recompute = GENERATE(Recompute{}, Recompute{LayerPart::kLayer});
  }
  INFO(one.name << ", language " << ToString(pair.language));
  const Recording recording(one, config);
  const Inputs inputs = InputsOf(one.family);
  const auto compare = [&](const std::string& kind, const Values& own) {
    Values wanted;
    for (const auto& [name, values] : own) {
      wanted[name] = recording.Expected(kind + recording.NameOf(config, name));
    }
    CHECK(Difference(wanted, own) < kExact);
  };
  {
    Job job(config);
    Start(job, config, recording);
    CHECK(job.Train({inputs}, 1.0).loss == Approx(recording.Expected("loss")[0]).epsilon(kExact));
    job.ReduceGradients();
    const Values gradients = job.Tensors(TensorKind::kGradient);
    CHECK(gradients.size() == (one.name == "whole" ? 32U : 28U));
    compare("gradient/", gradients);
  }
  Job job(config);
  Start(job, config, recording);
  const Trained trained = FiveSteps(job, inputs);
  const auto close = [&](const std::string& name, const std::vector<double>& got) {
    const std::vector<double> wanted = recording.Expected(name);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CHECK(got[i] == Approx(wanted[i]).epsilon(kExact));
    }
  };
  close("losses", trained.losses);
  close("norms", trained.norms);
}

/// All tensors of both files are the same numbers.
void CheckSame(const std::string& wanted, const std::string& got) {
  const SafetensorsReader a(wanted);
  const SafetensorsReader b(got);
  CHECK(a.entries().size() == b.entries().size());
  for (const TensorEntry& entry : a.entries()) {
    INFO(entry.name);
    REQUIRE(b.Find(entry.name) != nullptr);
    CHECK(Difference({{"", Recording::Numbers(a, entry.name)}},
                     {{"", Recording::Numbers(b, entry.name)}}) < kExact);
  }
}

TEST_CASE("trained adapters are exported as PEFT saves and merges them", "[torch][oracle]") {
  const Case& one = GENERATE(from_range(Cases()));
  Config config = Load(one.family, one.toml);
  SetLayouts(config, {.tp = 2}, {.tp = 4, .pp = 2});
  const Recording recording(one, config);
  Job job(config);
  Start(job, config, recording);
  FiveSteps(job, InputsOf(one.family));
  const ScratchFolder scratch;
  const std::string checkpoint = scratch / "checkpoint";
  std::vector<WrittenShard> shards;
  ForEachProgram(job, config, [&](const ShardAddress& shard, StageProgram& program) {
    shards.push_back({shard, WriteShard(program, shard, {checkpoint, 5})});
  });
  WriteManifest(checkpoint, MakeManifest({.step = 5}, shards));
  const auto saved = SavedParameters::OfCheckpoint(checkpoint);
  for (const auto& [name, spec] : AllParameters(config)) {
    INFO(name);
    CHECK(saved.Has(name) == !spec.frozen);  // the others are those of the folder
  }
  const auto ignore = [](const std::string&, std::uint64_t) {};
  WriteExport(PlanAdapters(config, saved), saved, scratch / "apart", ignore);
  CheckSame(recording.folder() + "/trained/adapter_model.safetensors",
            scratch / "apart/adapter_model.safetensors");
  ExportPlan plan = PlanExport(config, saved, {.image = 30});
  for (ExportedFile& file : plan.folders[0].files) {
    for (ExportedTensor& tensor : file.tensors) {
      // As the source it would be rounded to float32.
      if (tensor.adapter || !tensor.own.empty()) tensor.type = StoredType::kFloat64;
    }
  }
  WriteExport(plan, saved, scratch / "merged", ignore);
  CheckSame(recording.folder() + "/merged.safetensors", scratch / "merged/model.safetensors");
}

}  // namespace
}  // namespace troupe::oracle
