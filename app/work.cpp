#include "app/work.hpp"

#include <iostream>

#include "app/cause.hpp"
#include "app/run_spec.hpp"
#include "checkpoint/weights_folder.hpp"
#include "data/epochs.hpp"

namespace troupe {

/// The plan of the job, once the rows are counted.
static std::shared_ptr<const JobPlan> CountedPlan(const RunSpec& run, const RowSource* source) {
  if (source == nullptr || !run.config().run.epochs) return run.plan;
  return std::make_shared<const JobPlan>(WithSteps(run.config(), source->places_per_epoch()));
}

Work::Work(const RunSpec& run)
    : source_(OpenInputs(run.config())),
      rows_(std::dynamic_pointer_cast<RowSource>(source_)),
      plan_(CountedPlan(run, rows_.get())),
      whole_(plan_) {
  CheckWeights(plan_->config());
  for (const std::string& text : run.arguments.work.faults) {
    faults_.push_back(PlantedFault::Parse(text));
  }
}

void Work::TakeLayouts(const Config& config) {
  plan_ = std::make_shared<const JobPlan>(config);
  source_->TakeLayouts(config);
}

std::string Work::Task() const {
  std::string task = "the command = " + Command() + "\n";
  const RunConfig& run = plan_->config().run;
  if (run.epochs) task += "the number of steps = " + std::to_string(run.steps) + "\n";
  if (rows_) task += "the digest of the rows = " + rows_->RowsDigest() + "\n";
  if (!rows_ || rows_->skipped_lines().empty()) return task;
  return task + "the list of skipped rows = " + rows_->SkippedText() + "\n";
}

void Work::Warn() {
  if (!rows_) return;
  for (const std::string& line : rows_->skipped_lines()) PrintWarning(line);
}

JobSetup Work::Setup(bool) {
  JobSetup setup;
  setup.plan = plan_;
  setup.source = source_;
  setup.faults = faults_;
  return setup;
}

std::unique_ptr<Work> OpenWork(const RunSpec& run) {
  return run.arguments.work.verify ? OpenVerification(run) : OpenTraining(run);
}

int ReportFailure(const JobEnd& end) {
  if (!end.reported) PrintCause(end.failure, end.advice);
  return ExitCodeOf(end.failure.kind);
}

void WarnOfRemarks(const LoadedConfig& loaded) {
  for (const ConfigError& remark : loaded.remarks) {
    PrintWarning(ToString(remark));
  }
}

}  // namespace troupe
