#include "cli/work.hpp"

#include <iostream>

#include "cli/work_kinds.hpp"
#include "modules/device/backend.hpp"

namespace troupe {

std::unique_ptr<Work> OpenWork(WorkArguments arguments) {
  auto work = arguments.verify ? OpenVerification(arguments) : OpenTraining(arguments);
  const std::string missing = MissingFor(work->plan().config().cluster.backend);
  if (!missing.empty()) {
    const Origins& origins = work->loaded().origins;
    const auto written = origins.find("cluster.backend");
    const Place place = written == origins.end() ? Place() : written->second.place;
    throw ConfigErrors(
        {{place.file, place.line, place.column,
          "cluster.backend = \"" + work->plan().config().cluster.backend + "\": " + missing}});
  }
  return work;
}

std::vector<PlantedFault> FaultsOf(const WorkArguments& arguments) {
  std::vector<PlantedFault> faults;
  for (const std::string& text : arguments.faults) faults.push_back(PlantedFault::Parse(text));
  return faults;
}

int ReportFailure(const JobEnd& end) {
  if (!end.told) std::cerr << end.advice << "troupe: " << end.failure << '\n';
  return end.lost ? kExitLost : kExitFailed;
}

void WarnOfRemarks(const LoadedConfig& loaded) {
  for (const ConfigError& remark : loaded.remarks) {
    std::cerr << "warning: " << ToString(remark) << '\n';
  }
}

}  // namespace troupe
