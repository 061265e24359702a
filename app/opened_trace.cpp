#include "app/opened_trace.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "actors/wait_lists.hpp"
#include "app/run_directory.hpp"
#include "configs/loader.hpp"
#include "files/text_file.hpp"
#include "plan/job_plan.hpp"

namespace troupe {
namespace {

const std::string& Existing(const std::string& run_directory) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_directory, ignored)) {
    throw std::invalid_argument(run_directory + ": expected a run directory, found none");
  }
  return run_directory;
}

}  // namespace

OpenedTrace::OpenedTrace(const std::string& run_directory)
    : directory(Existing(run_directory)),
      trace(ReadRunTrace(run_directory)),
      index(trace),
      steps(index) {}

RuleInputs RuleOfRun(const OpenedTrace& run) {
  try {
    const JobPlan plan(LoadConfig(ResolvedFile(run.directory)).config);
    return {plan.graph(), plan.schedule()};
  } catch (const std::exception&) {
    return RuleOf(run.trace);
  }
}

Failure CauseOf(const std::string& run_directory) {
  const std::string path = NewestTraceFolder(run_directory) + "/" + kCauseFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  const TextFile file = ReadTextFile(path, kMaxWholeFile, "expected a line, got more than 64 MiB");
  if (!file.failure.empty()) return "but " + path + ": " + file.failure;
  Failure cause;
  std::istringstream lines(file.text);
  std::getline(lines, cause.text);
  for (std::string actor; std::getline(lines, actor);) cause.actors.push_back(actor);
  return cause;
}

}  // namespace troupe
