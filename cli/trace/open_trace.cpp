#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "actors/job_plan.hpp"
#include "actors/waits_file.hpp"
#include "cli/rounds.hpp"
#include "cli/trace/trace.hpp"
#include "configs/loader.hpp"
#include "configs/text_file.hpp"

namespace troupe {
namespace {

const std::string& Existing(const std::string& run_directory) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_directory, ignored)) {
    throw std::invalid_argument(run_directory + ": expected a run directory, found none");
  }
  return run_directory;
}

/// Training rounds of the run's plan before `round`; nothing without a readable resolved.toml.
std::optional<std::int64_t> StepsBefore(std::int64_t round, const std::string& run_directory) {
  try {
    const LoadedConfig loaded = LoadConfig(run_directory + "/resolved.toml");
    const RoundPlan plan = TrainingPlan(loaded.config, loaded.config.data.held_out.empty() ? 0 : 1);
    std::int64_t steps = 0;
    for (std::int64_t number = 0; number < round; ++number) {
      const auto planned = plan(number);
      if (planned && planned->train) ++steps;
    }
    return steps;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The last step in metrics.jsonl; 0: there is none.
std::int64_t LastLogged(const std::string& run_directory) {
  std::ifstream file(run_directory + "/metrics.jsonl");
  std::int64_t last = 0;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("kind") || json["kind"] != "step") continue;
    const auto step = json.find("step");
    if (step != json.end() && step->is_number_integer())
      last = std::max(last, step->get<std::int64_t>());
  }
  return last;
}

/// Rounds of `steps` that have ended: the last one has when it has as much work as another.

}  // namespace

std::int64_t FirstStepOf(const TraceIndex& index, const std::string& run_directory) {
  const Steps steps(index);
  if (steps.all().empty()) return 1;
  const std::int64_t planned =
      1 + StepsBefore(steps.all().front().round, run_directory).value_or(0);
  const std::int64_t logged = LastLogged(run_directory);
  const auto complete = static_cast<std::int64_t>(steps.all().size());
  // A line is written a moment after the step has ended. More than that: the run was resumed, and
  // its rounds count from there.
  if (logged == 0 || std::abs(planned + complete - 1 - logged) <= 1) return planned;
  return std::max<std::int64_t>(1, logged - complete + 1);
}

OpenTrace::OpenTrace(const std::string& run_directory)
    : directory(Existing(run_directory)),
      trace(ReadRunTrace(run_directory)),
      index(trace),
      steps(index, FirstStepOf(index, run_directory)) {}

RuleInputs RuleOfRun(const OpenTrace& run) {
  try {
    const JobPlan plan(LoadConfig(run.directory + "/resolved.toml").config);
    return {plan.graph(), plan.schedule()};
  } catch (const std::exception&) {
    return RuleOf(run.trace);
  }
}

std::string CauseOf(const std::string& run_directory) {
  const std::string path = NewestTraceFolder(run_directory) + "/" + kCauseFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  const TextFile file = ReadTextFile(path, kMaxWholeFile, "expected a line, got more than 64 MiB");
  if (!file.failure.empty()) return "but " + path + ": " + file.failure;
  return file.text.substr(0, file.text.find('\n'));
}

}  // namespace troupe
