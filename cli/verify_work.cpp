#include <iostream>
#include <memory>

#include "cli/cause.hpp"
#include "cli/describe.hpp"
#include "cli/rounds.hpp"
#include "cli/verify_observer.hpp"
#include "cli/work_kinds.hpp"
#include "data/llava.hpp"

namespace troupe {
namespace {

LoadedConfig LoadFor(const WorkArguments& arguments) {
  auto overrides = arguments.config.overrides;
  if (!arguments.dtype.empty()) overrides.push_back("run.precision=\"" + arguments.dtype + "\"");
  return LoadWithData(arguments.config.path, overrides);
}

class VerifyWork : public Work {
 public:
  explicit VerifyWork(const WorkArguments& arguments)
      : loaded_(LoadFor(arguments)),
        plan_(std::make_shared<const JobPlan>(loaded_.config)),
        source_(std::dynamic_pointer_cast<LlavaSource>(OpenInputs(plan_->config()))),
        steps_(arguments.steps),
        faults_(FaultsOf(arguments)) {
    if (!source_) {
      throw DataError(arguments.config.path +
                      ": synthetic modules compute nothing that could be verified");
    }
  }

  const LoadedConfig& loaded() const override { return loaded_; }
  const JobPlan& plan() const override { return *plan_; }
  std::string OpenRunDirectory(const std::string&) override { return ""; }
  std::string RemoveUnused() override { return ""; }
  std::string Task() const override {
    return "the command = verify, " + std::to_string(steps_) + " steps\n" + SkippedLine(*source_);
  }
  void Announce() override {
    WarnOfRemarks(loaded_);
    WarnOfSkippedRows(*source_);
    std::cout << LayoutTable(*plan_) << '\n' << std::flush;
  }

  JobSetup Setup(bool first) override {
    JobSetup setup;
    setup.plan = plan_;
    setup.source = source_;
    setup.faults = faults_;
    setup.inspect = true;
    if (!first) return setup;
    observer_ = std::make_shared<VerifyObserver>(plan_->config(), source_);
    setup.observer = observer_;
    setup.rounds = StepsOnly(plan_->config(), steps_);
    return setup;
  }

  int Finish(const JobEnd& end) override {
    if (!end.failure.empty()) return ReportFailure(end);
    for (const std::string& fault : observer_->faults()) std::cerr << fault << '\n';
    if (!observer_->faults().empty()) {
      PrintCause(std::to_string(observer_->faults().size()) +
                 " differences from the unsharded reference");
      return kExitFailed;
    }
    if (observer_->num_steps() < steps_) {
      std::cout << "interrupted after step " << observer_->num_steps() << " of " << steps_ << ": ";
    }
    const bool rounded = plan_->config().run.precision == Precision::kBFloat16;
    std::cout << "every gradient, parameter and moment "
              << (rounded ? "is near that of the unsharded float64 reference"
                          : "equals the unsharded reference")
              << ": worst gradient " << observer_->worst(TensorKind::kGradient)
              << " of its tensor's maximum\n";
    return kExitDone;
  }

 private:
  const LoadedConfig loaded_;
  const std::shared_ptr<const JobPlan> plan_;
  const std::shared_ptr<LlavaSource> source_;
  const std::int64_t steps_;
  const std::vector<PlantedFault> faults_;
  std::shared_ptr<VerifyObserver> observer_;
};

}  // namespace

std::unique_ptr<Work> OpenVerification(const WorkArguments& arguments) {
  return std::make_unique<VerifyWork>(arguments);
}

}  // namespace troupe
