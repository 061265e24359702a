#include <iostream>
#include <memory>

#include "app/cause.hpp"
#include "app/describe.hpp"
#include "app/exit_code.hpp"
#include "app/rounds.hpp"
#include "app/run_spec.hpp"
#include "app/verify_observer.hpp"
#include "app/work.hpp"
#include "configs/precision_words.hpp"
#include "data/rows/llava.hpp"

namespace troupe {
namespace {

class VerifyWork : public Work {
 public:
  explicit VerifyWork(const RunSpec& run) : Work(run), steps_(run.arguments.work.steps) {
    if (!rows_) {
      throw DataError(run.arguments.work.config.path +
                      ": synthetic modules compute nothing to verify");
    }
  }

  void Announce() override { std::cout << LayoutTable(*plan_) << '\n' << std::flush; }

  JobSetup Setup(bool first) override {
    JobSetup setup = Work::Setup(first);
    setup.inspect = true;
    if (!first) return setup;
    observer_ = std::make_shared<VerifyObserver>(plan_->config(), rows_);
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
    if (const auto choices = observer_->choices(); choices.asked > 0) {
      std::cout << choices.followed << " of " << choices.asked
                << " choices of experts were compared, " << choices.differing
                << (choices.differing == 1 ? " differs" : " differ") << " from the reference\n";
    }
    const Precision precision = plan_->config().run.precision;
    const bool rounded = precision == Precision::kBFloat16;
    std::cout << "every gradient, parameter and moment "
              << (rounded ? "is near that of the unsharded float64 reference"
                          : "equals the unsharded reference")
              << ": worst gradient " << observer_->worst(TensorKind::kGradient)
              << " of its tensor's maximum (limit " << ToleranceOf(precision, TensorKind::kGradient)
              << " in " << kPrecisionWords.at(static_cast<std::size_t>(precision)) << ")\n";
    return kExitDone;
  }

 private:
  std::string Command() const override { return "verify, " + std::to_string(steps_) + " steps"; }

  const std::int64_t steps_;
  std::shared_ptr<VerifyObserver> observer_;
};

}  // namespace

std::unique_ptr<Work> OpenVerification(const RunSpec& run) {
  return std::make_unique<VerifyWork>(run);
}

}  // namespace troupe
