#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "actors/job_plan.hpp"
#include "actors/waits_file.hpp"
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

}  // namespace

OpenTrace::OpenTrace(const std::string& run_directory)
    : directory(Existing(run_directory)),
      trace(ReadRunTrace(run_directory)),
      index(trace),
      steps(index) {}

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
  const std::string text = ReadWholeFile(path);
  return text.substr(0, text.find('\n'));
}

std::optional<std::vector<ActorWaits>> ReadWaits(const std::string& run_directory) {
  const std::string path = NewestTraceFolder(run_directory) + "/" + kWaitsFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  std::vector<ActorWaits> all;
  try {
    for (const auto& json : nlohmann::json::parse(ReadWholeFile(path))) {
      ActorWaits actor{json.at("who"), json.value("node", ""), json.value("busy", false), {}, {}};
      for (const auto& wait : json.value("waits", nlohmann::json::array())) {
        actor.waits.push_back({wait.at("what"), wait.value("unit", ""),
                               wait.value("number", std::int64_t{0}), wait.value("whom", ""),
                               wait.value("asked", false), wait.value("answer", "")});
      }
      for (const auto& owed : json.value("owes", nlohmann::json::array())) {
        actor.owes.push_back(
            {owed.at("what"), owed.value("number", std::int64_t{0}), owed.value("to", "")});
      }
      all.push_back(std::move(actor));
    }
  } catch (const nlohmann::json::exception& e) {
    throw std::runtime_error(path + ": expected an array of who waits for what: " + e.what());
  }
  return all;
}

}  // namespace troupe
