#include <atomic>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <unistd.h>

#include "app/cause.hpp"
#include "app/describe.hpp"
#include "app/exit_code.hpp"
#include "app/report.hpp"
#include "app/resume.hpp"
#include "app/rounds.hpp"
#include "app/run_directory.hpp"
#include "app/run_spec.hpp"
#include "app/state_change.hpp"
#include "app/train_observer.hpp"
#include "app/version.hpp"
#include "app/work.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/saved_parameters.hpp"
#include "checkpoint/sharded.hpp"
#include "data/epochs.hpp"
#include "layout/text.hpp"
#include "modules/torch/compute.hpp"
#include "plan/utilisation.hpp"

namespace troupe {
namespace {

void WarnOfCutRows(const RowSource& source, const Config& config) {
  if (source.num_cut_rows() == 0) return;
  PrintWarning(config.data.train_name() + ": " + std::to_string(source.num_cut_rows()) + " of " +
               std::to_string(source.train_size()) +
               " rows are longer than the context and lose their end");
}

/// Prints how often the run sees each row: "600 rows, 10.7 epochs", or "596 of 600 rows, ..." if
/// some are skipped; and the steps if they follow from that.
void PrintEpochs(const RowSource& source, const Config& config, const RunStart& begin) {
  const std::int64_t used = source.num_used_rows();
  const std::int64_t all = source.train_size();
  const auto rows = static_cast<double>(source.places_per_epoch());
  const auto batch = static_cast<double>(config.global_batch());
  const auto samples = static_cast<double>(PlaceAfter(config, begin, config.run.steps));
  const double epochs = samples / rows;
  std::cout << (used < all ? std::to_string(used) + " of " : "") << Counted(all, "row")
            << Formatted(", %.*f epochs", epochs < 0.1 ? 3 : 1, epochs)
            << (config.run.epochs ? ", " + Counted(config.run.steps, "step") : "") << '\n';
  if (batch <= rows) return;
  PrintWarning(config.data.train_name() + ": the global batch of " +
               std::to_string(config.global_batch()) + " is larger than the data set of " +
               std::to_string(used) + " rows, so each step sees rows more than once");
}

/// Writes the report of the run. A run does not fail because its report cannot be written.
void WriteReport(const std::string& run_directory) {
  const std::string path = run_directory + "/" + kReportFile;
  try {
    WritePageFile(path, ReportPage({run_directory}));
    std::cout << "report        " << path << '\n' << std::flush;
  } catch (const std::exception& e) {
    PrintWarning(std::string("no report: ") + e.what());
  }
}

class TrainWork : public Work {
 public:
  explicit TrainWork(const RunSpec& run)
      : Work(run),
        resolved_toml_(run.loaded.resolved_toml),
        start_(run.arguments.start),
        accepted_(run.arguments.accept.begin(), run.arguments.accept.end()),
        is_restarted_(run.arguments.generation > 0),
        training_(plan_) {}

  std::string OpenRunDirectory(const std::string& into) override {
    const RunConfig& run = plan_->config().run;
    directory_.emplace(run, resolved_toml_, into);
    is_new_ = is_new_ || directory_->is_new();
    Begin(directory_->checkpoint().empty() ? start_ : directory_->checkpoint());
    if (run.epochs && !directory_->checkpoint().empty()) {
      RequireSteps(into, training_->config().run);
    }
    return directory_->path();
  }

  bool GoOnFrom(const HeldState& held) override {
    if (held.step <= begin_.step) return false;
    begin_.place = PlaceAfter(training_->config(), begin_, held.step);
    begin_.step = held.step;
    resume_ = {.folder = held.folder, .manifest_sum = held.manifest_sum, .in_memory = true};
    checkpoint_ = "memory";
    return true;
  }

  void TakeLayouts(const Config& config) override {
    const std::int64_t steps = training_->config().run.steps;
    Work::TakeLayouts(config);
    Config rest = config;
    rest.run.steps = steps;
    training_ = std::make_shared<const JobPlan>(rest);
  }

  Beginning beginning() const override { return {begin_.step, checkpoint_}; }

  bool begins_anew() const override { return resume_.folder.empty(); }

  bool is_done() const override {
    const std::string weights = directory_->File(kWeightsFile);
    if (!std::filesystem::exists(weights)) return false;
    try {
      return SavedParameters::OfFile(weights).steps() == training_->config().run.steps;
    } catch (const std::exception& e) {
      PrintWarning(e.what());  // it is written again
      return false;
    }
  }

  void FinishDone() override {
    std::cout << "run directory " << directory_->path() << ": all steps were done\n" << std::flush;
    WriteReport(directory_->path());
  }

  std::string RemoveUnused() override {
    return directory_ && is_new_ ? troupe::RemoveUnused(directory_->path()) : "";
  }

  void Warn() override {
    if (rows_) WarnOfCutRows(*rows_, plan_->config());
    Work::Warn();
    const Compute compute = SetupCompute();
    if (!compute.warning.empty()) PrintWarning(compute.warning);
  }

  void Announce() override {
    if (std::exchange(announced_, true)) {
      std::cout << Beginning() << "\n\n" << std::flush;
      return;
    }
    std::cout << VersionText() << '\n' << LayoutTable(*plan_);
    if (rows_) PrintEpochs(*rows_, training_->config(), begin_);
    if (plan_->config().log.tensorboard) std::cout << UtilisationText(plan_->config()) << '\n';
    std::cout << "run directory " << directory_->path() << '\n';
    if (!plan_->config().checkpoint.periodic()) {
      std::cout << "no checkpoints: a crash loses the run " << kNotPeriodic << '\n';
    }
    if (is_restarted_ || !resume_.folder.empty()) std::cout << Beginning() << '\n';
    if (data_anew_) std::cout << "other data, or another order: from their beginning\n";
    std::cout << '\n' << std::flush;
  }

  JobSetup Setup(bool first) override {
    JobSetup setup = Work::Setup(first);
    const CheckpointConfig& checkpoint = training_->config().checkpoint;
    setup.copies_state = checkpoint.async && checkpoint.periodic();
    if (!first) return setup;
    LinkLatest(directory_->path());
    setup.plan = training_;
    setup.rounds = TrainingPlan(training_->config(), rows_ ? rows_->held_out_places() : 0, begin_);
    setup.checkpoints = CheckpointsOf();
    setup.run_directory = directory_->path();
    *saved_steps_ = saved_step_;
    setup.after_failure = [directory = directory_->path(), is_new = is_new_,
                           saved_steps = saved_steps_](FailureKind kind) {
      const bool unused = is_new && *saved_steps == 0;
      const std::string removed = unused ? troupe::RemoveUnused(directory) : "";
      return removed.empty() ? AdviceAfterFailure(kind, directory, *saved_steps) : removed;
    };
    SendRunDirectoryToLauncher(setup.run_directory);
    if (observer_) observer_->EndBar();
    if (plan_->config().trace.messages) {
      setup.trace_folder = std::filesystem::absolute(directory_->NewTraceFolder()).string();
    }
    observer_ = std::make_shared<TrainObserver>(training_->config(), *directory_, begin_.step,
                                                static_cast<int>(plan_->lock_steps().size()),
                                                isatty(STDOUT_FILENO) == 1, rows_);
    if (data_anew_) observer_->ForgetReplaced();
    setup.observer = observer_;
    return setup;
  }

  int Finish(const JobEnd& end) override {
    if (!end.failure.empty()) {
      observer_->Interrupted();
      return ReportFailure(end);
    }
    observer_->Summarize();
    WriteReport(directory_->path());
    return kExitDone;
  }

 private:
  std::string Command() const override { return "train"; }

  /// Where a job that goes on begins.
  std::string Beginning() const {
    if (!resume_.folder.empty()) {
      return "resuming after step " + std::to_string(begin_.step) + ", from " + checkpoint_;
    }
    return std::string("beginning again: there is no checkpoint ") +
           (plan_->config().checkpoint.periodic() ? "yet" : kNotPeriodic);
  }

  /// Makes the run go on from a checkpoint; "": from the beginning.
  void Begin(const std::string& checkpoint) {
    const Config& config = plan_->config();
    begin_ = {};
    resume_ = {};
    checkpoint_ = "";
    data_anew_ = false;
    training_ = plan_;
    saved_step_ = 0;
    begin_.group = config.global_batch();
    digest_ = rows_ ? rows_->TrainDigest() : "";
    if (checkpoint.empty()) return;
    const CheckpointManifest manifest = RequireManifest(checkpoint);
    checkpoint_ = checkpoint;
    if (!directory_->checkpoint().empty()) saved_step_ = manifest.run.step;
    resume_.folder = std::filesystem::absolute(checkpoint).string();
    resume_.manifest_sum = ManifestSum(checkpoint);
    for (const PartChange& change : CompareState(config, manifest)) {
      if (change.fresh) resume_.fresh.push_back(change.part);
    }
    begin_.step = manifest.run.step;
    const DataPosition& data = manifest.run.data;
    data_anew_ =
        data.digest != digest_ || OrdersDataAnew(config, ConfigurationOf(manifest, checkpoint));
    if (data_anew_ && !accepted_.contains(kDataName)) {
      const std::int64_t rows = rows_ ? rows_->train_size() : data.rows;
      throw LaunchError(checkpoint + ": the samples or their order have changed since" +
                        (rows == data.rows ? ""
                                           : ", from " + Counted(data.rows, "row") + " to " +
                                                 std::to_string(rows)) +
                        ", so the run cannot go on at the next one; to begin with the first, use "
                        "--accept data");
    }
    if (!data_anew_) {
      begin_.place = data.place;
      begin_.group = data.group;
      if (rows_) rows_->BeginAt(data.window);
    }
    if (!config.run.epochs) return;
    Config rest = config;
    rest.run.steps = begin_.step + StepsOfEpochs(*config.run.epochs, rows_->places_per_epoch(),
                                                 config.global_batch(), begin_.place);
    training_ = std::make_shared<const JobPlan>(rest);
  }

  Checkpoints CheckpointsOf() const {
    const std::string run = std::filesystem::absolute(directory_->path()).string();
    const Config& config = training_->config();
    Checkpoints checkpoints;
    checkpoints.run_directory = run;
    checkpoints.every = config.checkpoint.every;
    checkpoints.async = config.checkpoint.async;
    checkpoints.every_ns = static_cast<std::int64_t>(config.checkpoint.every_minutes * 60e9);
    checkpoints.resume = resume_;
    checkpoints.step = begin_.step;
    checkpoints.folder = [run](std::int64_t steps) { return NewCheckpointFolder(run, steps); };
    checkpoints.loaded = [order = resume_](const std::vector<LoadedShard>& shards,
                                           const OpenElsewhere& elsewhere) {
      std::vector<StoredTensor> read;
      for (const LoadedShard& shard : shards) {
        read.insert(read.end(), shard.tensors.begin(), shard.tensors.end());
      }
      CheckDigests(order, read, elsewhere);
    };
    RunState state{.step = 0, .steps = config.run.steps, .configuration = resolved_toml_};
    state.data = {.place = 0,
                  .group = begin_.group,
                  .rows = rows_ ? rows_->train_size() : 0,
                  .digest = digest_};
    checkpoints.manifest = [state, begin = begin_, plan = training_, rows = rows_](
                               std::int64_t steps, const std::vector<SavedShard>& saved) mutable {
      std::vector<WrittenShard> shards;
      for (const SavedShard& shard : saved) {
        shards.push_back({plan->ShardsOn(shard.rank).at(shard.stage), shard.stored});
      }
      state.step = steps;
      state.data.place = PlaceAfter(plan->config(), begin, steps);
      if (rows) state.data.window = rows->WindowAt(state.data.place);
      return FormatManifest(MakeManifest(state, shards));
    };
    checkpoints.completed = [saved_steps = saved_steps_](std::int64_t steps) {
      *saved_steps = steps;
    };
    checkpoints.steps = [run] {
      std::vector<std::int64_t> steps;
      for (const FoundCheckpoint& found : AllCheckpoints(run)) {
        if (found.fault.empty()) steps.push_back(found.step);
      }
      return steps;
    };
    return checkpoints;
  }

  const std::string resolved_toml_;
  const std::string start_;                  ///< checkpoint to begin with if the directory has none
  const std::set<std::string> accepted_;     ///< ResumeTerms::accepted
  const bool is_restarted_;                  ///< in the place of a process that is lost
  std::shared_ptr<const JobPlan> training_;  ///< with the steps of the whole run
  RunStart begin_;
  std::string checkpoint_;       ///< that it goes on from, for the user
  std::int64_t saved_step_ = 0;  ///< of the newest checkpoint in the run directory; 0: none
  LoadOrder resume_;
  std::string digest_;  ///< TrainDigest
  bool data_anew_ = false;
  bool announced_ = false;
  bool is_new_ = false;  ///< this process made the run directory
  std::optional<RunDirectory> directory_;
  /// Step of the newest complete checkpoint; 0 if there is none.
  const std::shared_ptr<std::atomic<std::int64_t>> saved_steps_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
  std::shared_ptr<TrainObserver> observer_;
};

}  // namespace

std::unique_ptr<Work> OpenTraining(const RunSpec& run) { return std::make_unique<TrainWork>(run); }

}  // namespace troupe
