#include <algorithm>

#include "configs/checks.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// The run directory's name starts with it.
static void CheckRunName(const Config& config, Report& report) {
  const std::string& name = config.run.name;
  if (name.empty() || name.front() == '.' || !IsMadeOfLetters(name, "._-")) {
    report.Add("run.name", "expected letters, digits, _, - and . (not first), got " + Quoted(name));
  }
  if (config.run.dir.empty()) report.Add("run.dir", "expected a directory, got \"\"");
}

static void CheckMicrobatches(const Config& config, Report& report) {
  const ScheduleConfig& schedule = config.schedule;
  if (!report.Good({"schedule.microbatches"})) return;
  // If no encoder is colocated, the window has no effect: Remarks reports that.
  if (schedule.window > schedule.microbatches && report.Good({"schedule.window"}) &&
      HasColocatedEncoder(config)) {
    report.Add("schedule.window",
               "expected at most schedule.microbatches = " + std::to_string(schedule.microbatches) +
                   ", got " + std::to_string(schedule.window));
  }
  if (!report.Good({"schedule.micro_batch_size"})) return;
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
  const std::string key = "optimizer.min_learning_rate";
  if (!report.Good({key, "optimizer.learning_rate"})) return;
  if (optimizer.min_learning_rate <= optimizer.learning_rate) return;
  report.Add(key,
             "expected at most optimizer.learning_rate = " + NumberText(optimizer.learning_rate) +
                 ", got " + NumberText(optimizer.min_learning_rate));
}

static void CheckTokenizer(const DataConfig& data, Report& report) {
  static const std::string kPrefix = "sentencepiece:";
  const std::string& tokenizer = data.tokenizer;
  const bool piece = tokenizer.starts_with(kPrefix) && tokenizer.size() > kPrefix.size();
  if (tokenizer == "bytes" || piece || !report.Good({"data.tokenizer"})) return;
  report.Add("data.tokenizer",
             "expected \"bytes\" or \"sentencepiece:FILE\", got " + Quoted(tokenizer));
}

static void CheckData(const Config& config, Report& report) {
  const auto real = std::ranges::find_if(config.modules, [&](const ModuleConfig& module) {
    return module.model->computes() && report.Good({KeyOf(module, "kind")});
  });
  if (real == config.modules.end()) return;
  CheckTokenizer(config.data, report);
  if (config.data.train.empty() && report.Good({"data.train"})) {
    report.Add("data.train",
               "missing; module " + Quoted(real->name) + " needs a file of training samples");
  }
  const bool evaluates = config.run.evaluate_every > 0 && report.Good({"run.evaluate_every"});
  if (evaluates && config.data.held_out.empty() && report.Good({"data.held_out"})) {
    report.Add("run.evaluate_every", "expected 0 because data.held_out is empty, got " +
                                         std::to_string(config.run.evaluate_every));
  }
}

void CheckRun(const Config& config, Report& report) {
  if (report.Good({"run.name", "run.dir"})) CheckRunName(config, report);
  CheckMicrobatches(config, report);
  CheckRates(config.optimizer, report);
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
    if (module.offload_ahead && (!leaves || !why.empty())) {
      add(KeyOf(module, "offload_ahead"),
          "has no effect: nothing of " + Quoted(module.name) + " leaves its ranks");
    }
  }
}

std::vector<ConfigError> Remarks(const Config& config, const Origins& origins) {
  std::vector<ConfigError> remarks;
  const auto add = [&](const std::string& key, const std::string& text) {
    const auto origin = origins.find(key);
    const Place place = origin == origins.end() ? Place{} : origin->second.place;
    remarks.push_back(ErrorAt(place, key + ": " + text));
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
  return remarks;
}

}  // namespace troupe
