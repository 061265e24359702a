#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>

#include "configs/checks.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// The run directory's name starts with the run's.
static void CheckRunName(const RunConfig& run, Report& report) {
  const bool legal =
      !run.name.empty() && run.name.front() != '.' && IsMadeOfLetters(run.name, "._-");
  report.Expect(legal, {"run.name"},
                "expected letters, digits, _, - and . (not first), got " + Quoted(run.name));
  report.Expect(!run.dir.empty(), {"run.dir"}, "expected a directory, got \"\"");
}

/// Returns the reason why keys for colocated encoders have no effect on `module`: "shares no ranks
/// with \"language\", which it feeds". Empty if they have an effect.
static std::string WhyNotColocated(const Config& config, const ModuleConfig& module) {
  std::string feeds;
  for (const EdgeConfig& edge : config.edges) {
    const ModuleConfig* to = config.Find(edge.to);
    if (edge.from != module.name || to == nullptr || to == &module) continue;
    if (!module.inline_in && HaveSameRanks(module, *to)) return "";
    feeds = edge.to;
  }
  if (feeds.empty()) return "feeds no module";
  if (module.inline_in) return "is inline in " + Quoted(*module.inline_in) + " and runs with it";
  return "shares no ranks with " + Quoted(feeds) + ", which it feeds";
}

/// Returns whether some encoder shares its ranks with a module that it feeds.
static bool HasColocatedEncoder(const Config& config) {
  return std::ranges::any_of(
      config.modules, [&](const auto& module) { return WhyNotColocated(config, module).empty(); });
}

static void CheckMicrobatches(const Config& config, Report& report) {
  const ScheduleConfig& schedule = config.schedule;
  // If no encoder is colocated, the window has no effect: Remarks reports that.
  report.Expect(
      schedule.window <= schedule.microbatches || !HasColocatedEncoder(config),
      {"schedule.window", "schedule.microbatches"},
      "expected at most schedule.microbatches = " + std::to_string(schedule.microbatches) +
          ", got " + std::to_string(schedule.window));
  if (!report.Good({"schedule.micro_batch_size", "schedule.microbatches"})) return;
  for (const auto& module : config.modules) {
    // Each factor is below 2^31 and dp below 2^17, so only the last product can exceed 2^63.
    const double batch = static_cast<double>(schedule.micro_batch_size) *
                         static_cast<double>(schedule.microbatches) * module.layout.dp;
    if (batch <= INT32_MAX) continue;
    return report.Add("schedule.micro_batch_size",
                      "expected a global batch of at most 2147483647 samples, got " +
                          std::to_string(schedule.micro_batch_size) + " * " +
                          std::to_string(schedule.microbatches) + " microbatches * dp " +
                          std::to_string(module.layout.dp));
  }
}

static void CheckRates(const OptimizerConfig& optimizer, Report& report) {
  report.Expect(
      optimizer.min_learning_rate <= optimizer.learning_rate,
      {"optimizer.min_learning_rate", "optimizer.learning_rate"},
      "expected at most optimizer.learning_rate = " + NumberText(optimizer.learning_rate) +
          ", got " + NumberText(optimizer.min_learning_rate));
}

/// Reports two keys that state the same in different forms.
static void CheckOneForm(const std::string& count, const std::string& share, Report& report) {
  report.Expect(!report.Knows(count) || !report.Knows(share), {report.Later(count, share)},
                "expected one of " + count + " and " + share + ", got both");
}

/// Only rows of data.train can be counted.
static void CheckEpochs(const Config& config, Report& report) {
  CheckOneForm("run.steps", "run.epochs", report);
  CheckOneForm("optimizer.warmup_steps", "optimizer.warmup_ratio", report);
  const bool computes = FindComputing(config, report) != nullptr;
  report.Expect(!config.run.epochs || computes || config.modules.empty(), {"run.epochs"},
                "expected run.steps: modules of kind \"synthetic\" read no rows to count");
}

/// Reports a file whose ending belongs to no format that is read, or to another one than stated.
static void CheckEnding(const std::string& key, const std::string& path,
                        const std::string& format_key, const std::string& format, Report& report) {
  if (path.empty()) return;
  const std::string ending = std::filesystem::path(path).extension();
  if (ending.find_first_of("}*?]") != std::string::npos) return;  // of a pattern
  const std::map<std::string, std::string> formats = {{"", "llava"},
                                                      {".json", "llava"},
                                                      {".jsonl", "llava"},
                                                      {".tar", "webdataset"},
                                                      {".parquet", "parquet"}};
  const auto found = formats.find(ending);
  report.Expect(found != formats.end(), {key},
                "expected a *.json, *.jsonl, *.tar or *.parquet, got " + Quoted(path));
  if (found == formats.end() || format == "auto") return;
  report.Expect(format == found->second, {format_key, key},
                "expected \"auto\" or " + Quoted(found->second) + " for " + Quoted(path) +
                    ", got " + Quoted(format));
}

static void CheckWeights(const std::vector<DataSource>& sources, Report& report) {
  std::int64_t weighted = 0;
  double sum = 0.0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!report.Good({SourceKey(i, "weight")})) return;
    if (sources[i].weight) ++weighted;
    sum += sources[i].weight.value_or(0.0);
  }
  report.Expect(weighted == 0 || weighted == std::ssize(sources), {"data.sources"},
                "expected a weight of every source or of none, got " + std::to_string(weighted) +
                    " of " + std::to_string(sources.size()));
  report.Expect(std::isfinite(sum), {"data.sources"}, "expected weights with a finite sum");
}

static void CheckData(const Config& config, Report& report) {
  report.Expect(
      !config.data.packing || config.data.group_by == GroupBy::kNone,
      {"data.packing", "data.group_by"},
      "expected packing or group_by, not both, since packs are made in the order of training");
  const ModuleConfig* const real = FindComputing(config, report);
  if (real == nullptr) return;
  const DataConfig& data = config.data;
  report.Expect(
      data.tokenizer == "bytes" || !SentencePieceFile(data.tokenizer).empty() ||
          !HuggingFaceFolder(data.tokenizer).empty(),
      {"data.tokenizer"},
      "expected \"bytes\", \"sentencepiece:FILE\" or \"hf:DIR\", got " + Quoted(data.tokenizer));
  report.Expect(data.has_train(), {"data.train"},
                "missing; module " + Quoted(real->name) + " needs a file of training samples");
  report.Expect(data.train.empty() || data.sources.empty(), {"data.train", "data.sources"},
                "expected one of data.train and [[data.sources]], got both");
  CheckEnding("data.train", data.train, "data.format", data.format, report);
  CheckEnding("data.held_out", data.held_out, "data.format", data.format, report);
  for (std::size_t i = 0; i < data.sources.size(); ++i) {
    const DataSource& source = data.sources[i];
    CheckEnding(SourceKey(i, "path"), source.path, SourceKey(i, "format"), source.format, report);
  }
  CheckWeights(data.sources, report);
  constexpr std::size_t kMostSources = 10'000;
  report.Expect(data.sources.size() <= kMostSources, {"data.sources"},
                "expected at most 10000 sources, got " + std::to_string(data.sources.size()));
  const std::int64_t every = config.run.evaluate_every;
  report.Expect(every == 0 || !data.held_out.empty(), {"run.evaluate_every", "data.held_out"},
                "expected 0 because data.held_out is empty, got " + std::to_string(every));
}

void CheckRun(const Config& config, Report& report) {
  CheckRunName(config.run, report);
  CheckMicrobatches(config, report);
  CheckRates(config.optimizer, report);
  CheckEpochs(config, report);
  CheckData(config, report);
}

/// Adds keys that only affect colocated encoders: windows of microbatches, and the state that
/// leaves a device while the other module uses it.
template <class Add>
static void AddColocatedOnly(const Config& config, Add add) {
  if (config.schedule.window != 0 && !HasColocatedEncoder(config)) {
    add("schedule.window", "has no effect: no encoder shares its ranks with a module it feeds");
  }
  for (const ModuleConfig& module : config.modules) {
    const std::string why = WhyNotColocated(config, module);
    const bool leaves = module.offload != Offload::kNone;
    if (leaves && !why.empty()) {
      add(KeyOf(module, "offload"), "has no effect: " + Quoted(module.name) + " " + why);
    }
    if (module.offload_results && !why.empty()) {
      add(KeyOf(module, "offload_results"), "has no effect: " + Quoted(module.name) + " " + why);
    } else if (module.offload_results && config.cluster.backend != Backend::kCuda) {
      add(KeyOf(module, "offload_results"), "has no effect with cluster.backend = \"" +
                                                ToString(config.cluster.backend) +
                                                "\": rows are in host memory anyway");
    }
    if (module.offload_ahead && (!leaves || !why.empty())) {
      add(KeyOf(module, "offload_ahead"),
          "has no effect: nothing of " + Quoted(module.name) + " leaves its ranks");
    }
  }
}

/// Adds keys that were changed and of which nothing comes, without a word about those that have their
/// default.
template <class Add>
static void AddUnused(const Config& config, Add add) {
  if (!config.data.packing && config.data.pack_window != DataConfig{}.pack_window) {
    add("data.pack_window", "has no effect without data.packing = true");
  }
  const bool cuts_samples = std::ranges::any_of(
      config.modules, [](const ModuleConfig& module) { return module.layout.cp > 1; });
  if (!cuts_samples && config.schedule.context_exchange != ScheduleConfig{}.context_exchange) {
    add("schedule.context_exchange", "has no effect: no module has a cp above 1");
  }
  const ModuleConfig fresh;
  for (const ModuleConfig& module : config.modules) {
    if (module.model->num_experts() == 0) {
      const auto no_experts = [&](const std::string& key, bool changed) {
        if (!changed) return;
        add(KeyOf(module, "moe." + key),
            "has no effect: " + Quoted(module.name) + " has no experts");
      };
      no_experts("balance", module.moe.balance != fresh.moe.balance);
      no_experts("balance_coefficient",
                 module.moe.balance_coefficient != fresh.moe.balance_coefficient);
      no_experts("z_coefficient", module.moe.z_coefficient != fresh.moe.z_coefficient);
    }
    const bool fed = std::ranges::any_of(
        config.edges, [&](const EdgeConfig& edge) { return edge.to == module.name; });
    if (!module.frozen || module.lora || fed) continue;
    const std::string why = "has no effect: nothing of " + Quoted(module.name) + " trains";
    if (module.recompute != fresh.recompute) add(KeyOf(module, "recompute"), why);
    if (module.offload_activations != fresh.offload_activations) {
      add(KeyOf(module, "offload_activations"), why);
    }
  }
}

std::vector<ConfigError> Remarks(const Config& config, const Origins& origins) {
  std::vector<ConfigError> remarks;
  const auto add = [&](const std::string& key, const std::string& text) {
    const auto origin = origins.find(key);
    const Place place = origin == origins.end() ? Place{} : origin->second.place;
    remarks.push_back({place, key + ": " + text});
  };
  if (config.run.tf32 && config.cluster.backend != Backend::kCuda) {
    add("run.tf32", "has no effect with cluster.backend = \"" + ToString(config.cluster.backend) +
                        "\": it is about products of float32 on a GPU");
  } else if (config.run.tf32 && config.run.precision != Precision::kFloat32) {
    const bool is_short = config.run.precision == Precision::kBFloat16;
    add("run.tf32", std::string("has no effect with run.precision = ") +
                        (is_short ? "\"bfloat16\"" : "\"float64\"") +
                        ": it is about products of float32");
  }
  AddColocatedOnly(config, add);
  AddUnused(config, add);
  for (const ModuleConfig& module : config.modules) {
    const bool of_folder = module.weights && !HuggingFaceFolder(*module.weights).empty();
    if (!of_folder || !module.model->text() || config.data.tokenizer != "bytes") continue;
    add(KeyOf(module, "weights"),
        "no published model was trained on the tokens of data.tokenizer "
        "= \"bytes\"");
  }
  return remarks;
}

}  // namespace troupe
