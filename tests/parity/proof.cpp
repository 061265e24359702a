#include "tests/parity/proof.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include "app/rounds.hpp"
#include "app/run_job.hpp"
#include "app/verify_observer.hpp"
#include "configs/loader.hpp"
#include "modules/groups.hpp"
#include "modules/torch/compute.hpp"
#include "modules/torch/programs.hpp"
#include "tests/actors/hand_queue.hpp"
#include "transport/abort_signal.hpp"

namespace troupe {
namespace {

/// Ends the program when a job hangs: its threads could not be stopped otherwise, and a test that
/// waits says nothing about which of a hundred layouts it is.
class Watchdog {
 public:
  explicit Watchdog(const Config& config)
      : thread_([this, text = ResolvedToml(config)] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, std::chrono::minutes(2), [this] { return done_; })) return;
          std::cerr << "this job has not ended within 2 minutes:\n" << text << std::flush;
          std::_Exit(1);
        }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::thread thread_;
};

/// Counts what the base class compares, so that a run that compared nothing proves nothing.
struct CountingObserver : VerifyObserver {
  using VerifyObserver::VerifyObserver;
  void OnGradients(const Round& round, const std::vector<TensorPiece>& pieces) override {
    VerifyObserver::OnGradients(round, pieces);
    ++comparisons;
  }
  void OnUpdated(const Round& round, TensorKind kind,
                 const std::vector<TensorPiece>& pieces) override {
    VerifyObserver::OnUpdated(round, kind, pieces);
    ++comparisons;
  }
  std::int64_t comparisons = 0;
};

std::string Run(JobSetup setup, std::int64_t steps) {
  static const Compute compute = SetupCompute();
  const Config& config = setup.plan->config();
  setup.rounds = StepsOnly(config, steps);
  const Watchdog watchdog(config);
  return RunInProcess(setup).text;
}

}  // namespace

std::string Proof::Objection() const {
  std::string text = failure.empty() ? "" : failure + "\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(faults.size(), 5); ++i) {
    text += faults[i] + "\n";
  }
  if (text.empty() && comparisons != 4 * kProofSteps) {
    text = "compared " + std::to_string(comparisons) + " times, expected " +
           std::to_string(4 * kProofSteps);
  }
  if (text.empty() && choices.followed != choices.asked) {
    text = "compared " + std::to_string(choices.followed) + " choices of experts, expected " +
           std::to_string(choices.asked);
  }
  return text;
}

Proof Prove(const Config& config, const Wrap& wrap, bool queues) {
  JobSetup setup;
  setup.plan = std::make_shared<const JobPlan>(config);
  const auto source = std::make_shared<RowSource>(setup.plan->config());
  const auto observer = std::make_shared<CountingObserver>(setup.plan->config(), source);
  observer->set_quiet(true);
  setup.source = source;
  setup.observer = observer;
  setup.inspect = true;
  setup.wrap_programs = wrap;
  if (queues) {
    setup.make_queue = [](int) { return std::make_unique<RunningQueue>(Buffer::kHost); };
  }
  Proof proof;
  proof.failure = Run(std::move(setup), kProofSteps);
  proof.faults = observer->faults();
  proof.gradients = observer->gradients();
  proof.worst_gradient = observer->worst(TensorKind::kGradient);
  for (const TensorKind kind : {TensorKind::kParameter, TensorKind::kGradient,
                                TensorKind::kFirstMoment, TensorKind::kSecondMoment}) {
    proof.worst[kind] = observer->worst(kind);
  }
  proof.comparisons = observer->comparisons;
  proof.choices = observer->choices();
  return proof;
}

Wrap Portable(const Config& config) {
  // Groups of their own: those of the job are in the factory that is passed over.
  return [config](const ProgramFactory&) {
    const auto groups = std::make_shared<GroupTable>(config, std::make_shared<AbortSignal>());
    return MakeTorchPrograms(config, groups, TorchOptions{.portable = true});
  };
}

std::string Train(const Config& config, std::int64_t steps, std::shared_ptr<JobObserver> observer,
                  bool inspect) {
  JobSetup setup;
  setup.plan = std::make_shared<const JobPlan>(config);
  setup.source = std::make_shared<RowSource>(setup.plan->config());
  setup.observer = std::move(observer);
  setup.inspect = inspect;
  return Run(std::move(setup), steps);
}

}  // namespace troupe
