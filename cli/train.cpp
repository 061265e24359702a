#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/rounds.hpp"
#include "cli/run_directory.hpp"
#include "cli/run_job.hpp"
#include "cli/train_observer.hpp"
#include "configs/loader.hpp"
#include "data/llava_source.hpp"
#include "modules/torch/compute.hpp"
#include "trace/order.hpp"
#include "trace/trace_file.hpp"

namespace troupe {
namespace {

std::int64_t HeldOutSize(const InputSource& source) {
  const auto* llava = dynamic_cast<const LlavaSource*>(&source);
  return llava == nullptr ? 0 : llava->held_out_size();
}

void WarnOfCutRows(const InputSource& source, const Config& config) {
  const auto* llava = dynamic_cast<const LlavaSource*>(&source);
  if (llava == nullptr || llava->num_cut_rows() == 0) return;
  std::cerr << "warning: " << config.data.train << ": " << llava->num_cut_rows() << " of "
            << llava->train_size() << " rows are longer than the context and lose their end\n";
}

/// The order in which every stage ran the last training step.
void PrintLastOrder(const std::string& trace_path) {
  const Trace trace = ReadTrace(trace_path);
  std::int64_t last = -1;
  for (const PassRecord& record : trace.records) {
    if (record.kind == WorkKind::kUpdate) last = std::max(last, record.round);
  }
  if (last < 0) return;
  std::cout << "what each stage ran in the last step (F forward, B backward of a microbatch; of a "
               "window of them in a colocated encoder):\n"
            << FormatOrders(PassOrders(trace.records, last), trace.stage_names);
}

int Train(const ConfigArguments& arguments) {
  const LoadedConfig loaded = LoadConfig(arguments.path, arguments.overrides);
  const auto plan = std::make_shared<const JobPlan>(loaded.config);
  JobSetup setup;
  setup.plan = plan;
  setup.source = OpenInputs(plan->config());
  setup.rounds = TrainingPlan(plan->config(), HeldOutSize(*setup.source));
  const RunDirectory directory(plan->config().run, loaded.resolved_toml);
  setup.trace_path = directory.File("trace.bin");
  const auto observer = std::make_shared<TrainObserver>(plan->config(), directory,
                                                        static_cast<int>(plan->lock_steps().size()),
                                                        isatty(STDOUT_FILENO) == 1);
  setup.observer = observer;

  WarnOfCutRows(*setup.source, plan->config());
  const Compute compute = SetupCompute();
  if (!compute.warning.empty()) std::cerr << "warning: " << compute.warning << '\n';
  std::cout << VersionText() << '\n'
            << LayoutTable(*plan) << "run directory " << directory.path() << "\n\n"
            << std::flush;
  const std::string failure = RunInProcess(setup);
  if (!failure.empty()) {
    observer->Interrupted();
    std::cerr << "troupe: " << failure << '\n';
    return kExitFailed;
  }
  observer->Summarize();
  PrintLastOrder(setup.trace_path);
  return kExitDone;
}

}  // namespace

void AddTrain(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "train",
      "Train a configuration in this process, every rank on a thread of its own.\n"
      "Prints a line per step and leaves a run directory with the resolved\n"
      "configuration, metrics.jsonl, the trace and the final weights.\n"
      "Exit code: 0 done, 1 the run failed, 2 configuration or data are wrong.");
  auto arguments = std::make_shared<ConfigArguments>();
  AddConfigArguments(*verb, *arguments);
  verb->callback([&command, arguments] { command = [arguments] { return Train(*arguments); }; });
}

}  // namespace troupe
