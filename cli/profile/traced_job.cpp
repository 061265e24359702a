#include "cli/profile/traced_job.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "app/exit_code.hpp"
#include "app/interrupt.hpp"
#include "app/run_job.hpp"
#include "files/file_error.hpp"

namespace troupe {
namespace {

/// A folder that exists as long as the object. A signal that requests an end removes it and ends the process: a
/// partial measurement is not worth keeping.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe_profile_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw FileError(name, "create", errno);
    path_ = name;
    interrupt_.OnSignal([this](int signal) {
      if (!EndsJob(signal)) return;
      std::fputs("interrupted\n", stderr);
      Remove();
      QuickExit(ExitCodeOfSignal(signal));
    });
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { Remove(); }
  const std::string& path() const { return path_; }

 private:
  void Remove() const {
    std::error_code ignored;
    // A thread of the job may make a file meanwhile.
    for (int attempt = 0; attempt < 3 && std::filesystem::exists(path_, ignored); ++attempt) {
      std::filesystem::remove_all(path_, ignored);
    }
  }

  std::string path_;
  Interrupt interrupt_;  // after path_, which its thread reads; keeps signals from the first moment
};

struct NoObserver : JobObserver {
  void OnRound(const RoundResult& /*result*/) override {}
};

}  // namespace

Round RoundOn(const Config& config, std::int64_t number, std::int64_t batch) {
  return {.number = number,
          .step = number,
          .microbatches = config.schedule.microbatches,
          .place = batch * config.global_batch(),
          .group = config.global_batch()};
}

TracedJob RunTraced(const std::shared_ptr<const JobPlan>& plan, int batches, int rounds) {
  const Config& config = plan->config();
  const TemporaryFolder folder;
  const auto source = std::make_shared<RowSource>(config);
  TracedJob job{plan, {}, {}, {}};
  for (int batch = 0; batch < batches; ++batch) {
    job.batches.push_back(source->PlacedShapesOf(RoundOn(config, batch, batch)));
  }
  JobSetup setup;
  setup.plan = plan;
  setup.source = source;
  setup.observer = std::make_shared<NoObserver>();
  setup.trace_folder = folder.path();
  setup.rounds = [&config, batches, rounds](std::int64_t number) -> std::optional<Round> {
    if (number >= rounds) return std::nullopt;
    return RoundOn(config, number, number % batches);
  };
  const std::string failure = RunInProcess(setup).text;
  if (!failure.empty()) throw std::runtime_error(failure);
  job.traces.push_back(ReadRunTrace(folder.path()));
  job.passes = MeasuredPassesOf(*plan, job.traces.front(), [batches](std::int64_t round) {
    return round < batches ? std::int64_t{-1} : round % batches;
  });
  return job;
}

void AddTimes(const TracedJob& more, TracedJob& job) {
  job.traces.insert(job.traces.end(), more.traces.begin(), more.traces.end());
  for (std::size_t i = 0; i < job.passes.size(); ++i) {
    const MeasuredPass& same = more.passes.at(i);  // in one order, since all ran the same steps
    for (auto seconds : {&MeasuredPass::core_s, &MeasuredPass::wall_s}) {
      auto& times = job.passes[i].*seconds;
      times.insert(times.end(), (same.*seconds).begin(), (same.*seconds).end());
    }
  }
}

}  // namespace troupe
