#include "cli/work.hpp"

#include <iostream>

#include "cli/cause.hpp"
#include "cli/work_kinds.hpp"
#include "configs/paths.hpp"
#include "data/llava_source.hpp"
#include "modules/device/backend.hpp"

namespace troupe {

std::unique_ptr<Work> OpenWork(WorkArguments arguments) {
  auto work = arguments.verify ? OpenVerification(arguments) : OpenTraining(arguments);
  const std::string missing = MissingFor(work->plan().config().cluster.backend);
  if (!missing.empty()) {
    const Origins& origins = work->loaded().origins;
    const auto written = origins.find("cluster.backend");
    const Place place = written == origins.end() ? Place() : written->second.place;
    throw ConfigErrors({{place.file, place.line, place.column,
                         "cluster.backend = \"" + ToString(work->plan().config().cluster.backend) +
                             "\": " + missing}});
  }
  return work;
}

void WarnOfSkippedRows(const InputSource& source) {
  const auto* llava = dynamic_cast<const LlavaSource*>(&source);
  if (llava == nullptr) return;
  for (const std::string& line : llava->skipped_lines()) std::cerr << "warning: " << line << '\n';
}

std::string SkippedLine(const InputSource& source) {
  const auto* llava = dynamic_cast<const LlavaSource*>(&source);
  if (llava == nullptr || llava->skipped_lines().empty()) return "";
  return "the list of skipped rows = " + llava->SkippedText() + "\n";
}

LoadedConfig LoadWithData(const std::string& path, const std::vector<std::string>& overrides) {
  LoadedConfig loaded = LoadConfig(path, overrides);
  RequireDataFiles(loaded);
  return loaded;
}

std::vector<PlantedFault> FaultsOf(const WorkArguments& arguments) {
  std::vector<PlantedFault> faults;
  for (const std::string& text : arguments.faults) faults.push_back(PlantedFault::Parse(text));
  return faults;
}

int ReportFailure(const JobEnd& end) {
  if (!end.reported) PrintCause(end.failure, end.advice);
  return ExitCodeOf(end.failure.kind);
}

void WarnOfRemarks(const LoadedConfig& loaded) {
  for (const ConfigError& remark : loaded.remarks) {
    std::cerr << "warning: " << ToString(remark) << '\n';
  }
}

}  // namespace troupe
