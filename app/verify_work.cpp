#include <iostream>
#include <memory>

#include "app/cause.hpp"
#include "app/describe.hpp"
#include "app/exit_code.hpp"
#include "app/rounds.hpp"
#include "app/run_spec.hpp"
#include "app/verify_observer.hpp"
#include "app/work.hpp"
#include "data/llava.hpp"

namespace troupe {
namespace {

class VerifyWork : public Work {
 public:
  explicit VerifyWork(const RunSpec& run)
      : plan_(run.plan),
        source_(std::dynamic_pointer_cast<LlavaSource>(OpenInputs(plan_->config()))),
        steps_(run.arguments.work.steps),
        faults_(FaultsOf(run.arguments.work)) {
    if (!source_) {
      throw DataError(run.arguments.work.config.path +
                      ": synthetic modules compute nothing to verify");
    }
  }

  std::string OpenRunDirectory(const std::string&) override { return ""; }
  std::string RemoveUnused() override { return ""; }
  std::string Task() const override {
    return "the command = verify, " + std::to_string(steps_) + " steps\n" + SkippedLine(*source_);
  }
  void Warn() override { WarnOfSkippedRows(*source_); }
  void Announce() override { std::cout << LayoutTable(*plan_) << '\n' << std::flush; }

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
  const std::shared_ptr<const JobPlan> plan_;
  const std::shared_ptr<LlavaSource> source_;
  const std::int64_t steps_;
  const std::vector<PlantedFault> faults_;
  std::shared_ptr<VerifyObserver> observer_;
};

}  // namespace

std::unique_ptr<Work> OpenVerification(const RunSpec& run) {
  return std::make_unique<VerifyWork>(run);
}

}  // namespace troupe
