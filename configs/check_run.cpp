#include <algorithm>

#include "configs/checks.hpp"
#include "configs/colocating.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// The run directory's name starts with it.
static void CheckRunName(const Config& config, Report& report) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const std::string& name = config.run.name;
  if (name.empty() || name.front() == '.' || !std::ranges::all_of(name, letter)) {
    report.Add("run.name", "expected letters, digits, _, - and . (not first), got " + Quoted(name));
  }
  if (config.run.dir.empty()) report.Add("run.dir", "expected a directory, got \"\"");
}

static void CheckMicrobatches(const Config& config, Report& report) {
  const ScheduleConfig& schedule = config.schedule;
  if (!report.Good({"schedule.microbatches"})) return;
  // If no encoder is colocated, the window has no effect: Remarks reports that.
  const bool windows = std::ranges::any_of(
      config.modules, [&](const auto& module) { return IsColocatedEncoder(config, module); });
  if (windows && report.Good({"schedule.window"}) && schedule.window > schedule.microbatches) {
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

}  // namespace troupe
