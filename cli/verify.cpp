#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/describe.hpp"
#include "cli/rounds.hpp"
#include "cli/run_job.hpp"
#include "cli/verify_observer.hpp"
#include "configs/loader.hpp"

namespace troupe {
namespace {

struct VerifyArguments {
  ConfigArguments config;
  std::int64_t steps = 3;
  std::string dtype;
};

int Verify(VerifyArguments arguments) {
  auto& overrides = arguments.config.overrides;
  if (!arguments.dtype.empty()) overrides.push_back("run.precision=\"" + arguments.dtype + "\"");
  const LoadedConfig loaded = LoadConfig(arguments.config.path, overrides);
  const auto plan = std::make_shared<const JobPlan>(loaded.config);
  const auto source = std::dynamic_pointer_cast<LlavaSource>(OpenInputs(plan->config()));
  if (!source) {
    std::cerr << arguments.config.path
              << ": synthetic modules compute nothing that could be verified\n";
    return kExitBadInput;
  }
  const auto observer = std::make_shared<VerifyObserver>(plan->config(), source);
  JobSetup setup;
  setup.plan = plan;
  setup.source = source;
  setup.observer = observer;
  setup.rounds = StepsOnly(plan->config(), arguments.steps);
  setup.inspect = true;
  std::cout << LayoutTable(*plan) << '\n' << std::flush;
  const std::string failure = RunInProcess(setup);
  if (!failure.empty()) {
    std::cerr << "troupe: " << failure << '\n';
    return kExitFailed;
  }
  for (const std::string& fault : observer->faults()) std::cerr << fault << '\n';
  if (!observer->faults().empty()) {
    std::cerr << "troupe: " << observer->faults().size()
              << " differences from the unsharded reference\n";
    return kExitFailed;
  }
  std::cout
      << "every gradient, parameter and moment equals the unsharded reference: worst gradient "
      << observer->worst(TensorKind::kGradient) << " of its tensor's maximum\n";
  return kExitDone;
}

}  // namespace

void AddVerify(CLI::App& app, Command& command) {
  auto* verb = app.add_subcommand(
      "verify",
      "Prove a layout: train it and an unsharded reference (a plain libtorch loop) from\n"
      "the same weights on the same samples, and compare after every step each\n"
      "parameter's gradient, value and optimizer state with the reference, relative to\n"
      "that tensor's own maximum. Limits: 1e-5 in float32, 1e-10 in float64 (docs/verify.md).\n"
      "Exit code: 0 equal, 1 different or failed, 2 configuration or data are wrong.");
  auto arguments = std::make_shared<VerifyArguments>();
  AddConfigArguments(*verb, arguments->config);
  verb->add_option("--steps", arguments->steps, "training steps to compare")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  verb->add_option("--dtype", arguments->dtype,
                   "precision of both sides; float64 leaves rounding no room to hide a fault")
      ->check(CLI::IsMember({"float32", "float64"}));
  verb->callback([&command, arguments] { command = [arguments] { return Verify(*arguments); }; });
}

}  // namespace troupe
