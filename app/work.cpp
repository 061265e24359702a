#include "app/work.hpp"

#include <iostream>

#include "app/cause.hpp"
#include "app/run_spec.hpp"
#include "data/llava_source.hpp"

namespace troupe {

std::unique_ptr<Work> OpenWork(const RunSpec& run) {
  return run.arguments.work.verify ? OpenVerification(run) : OpenTraining(run);
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
