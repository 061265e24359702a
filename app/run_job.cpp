#include "app/run_job.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include "app/cause.hpp"
#include "app/exit_code.hpp"
#include "app/job_parts.hpp"
#include "app/preflight.hpp"
#include "configs/paths.hpp"
#include "data/row_source.hpp"
#include "data/rows/data_error.hpp"
#include "messages/system.hpp"
#include "modules/synthetic/synthetic_program.hpp"

namespace troupe {
namespace {

bool AnySynthetic(const Config& config) {
  return std::any_of(config.modules.begin(), config.modules.end(),
                     [](const ModuleConfig& m) { return !m.model->computes(); });
}

}  // namespace

/// Prints how far the indexing is, once a second, from the first second on.
static IndexPrinter IndexLines() {
  using Clock = std::chrono::steady_clock;
  return
      [begin = Clock::now(), next = Clock::now() + std::chrono::seconds(1),
       next_wait = Clock::now()](const std::string& files, const IndexProgress& progress) mutable {
        const Clock::time_point now = Clock::now();
        if (!progress.waits_for.empty()) {
          if (now < next_wait) return;  // there may be a wait for each of thousands of files
          next_wait = now + std::chrono::seconds(1);
          std::cerr << "waiting for another job that indexes the same files, such as " +
                           progress.waits_for + "\n"
                    << std::flush;
          return;
        }
        if (now < next) return;
        next = now + std::chrono::seconds(1);
        const double seconds = std::chrono::duration<double>(now - begin).count();
        std::cerr << "indexing " + files + ": " + std::to_string(progress.files_done) + " of " +
                         Counted(progress.files, "file") + ", " + Millions(progress.rows) +
                         " rows, " + Fixed(seconds, 0) + " s\n"
                  << std::flush;
      };
}

std::shared_ptr<InputSource> OpenInputs(const Config& config) {
  if (AnySynthetic(config)) return std::make_shared<SyntheticSource>(config);
  std::vector<std::string> missing;
  for (const MissingFile& file : MissingDataFiles(config)) {
    missing.push_back(file.key + ": " + file.reason + "; looked for " + file.looked_for);
  }
  if (!missing.empty()) throw DataError(std::move(missing));
  try {
    return std::make_shared<RowSource>(config, kRunDepth, PolicyOf(config.data), IndexLines());
  } catch (const DataError&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw DataError(e.what());  // a tokenizer's file that cannot be read is bad data, too
  }
}

void QuickExit(int exit_code) {
  std::cout << std::flush;
  std::cerr << std::flush;
  std::fflush(nullptr);
  _exit(exit_code);
}

/// Ends the process of a failed job even if one of its threads is stuck in a pass or a handler.
std::shared_ptr<void> EndInTime(AbortSignal& abort) {
  auto ended = std::make_shared<std::atomic<bool>>(false);
  auto subscription = abort.Subscribe([ended](const Failure& failure) {
    std::thread([ended, failure] {
      std::this_thread::sleep_for(kUnwinding);
      if (ended->load()) return;
      PrintCause(failure);
      QuickExit(ExitCodeOf(failure.kind));
    }).detach();
  });
  return std::shared_ptr<void>(nullptr, [ended, subscription](void*) { ended->store(true); });
}

Failure RunInProcess(const JobSetup& setup) {
  CheckResources(static_cast<int>(setup.plan->lock_steps().size()));
  const auto abort = std::make_shared<AbortSignal>();
  const auto tensors = std::make_shared<TensorStore>(abort);
  const auto processes =
      std::make_shared<const ProcessPlan>(ProcessPlan::Single(setup.plan->config().cluster.ranks));
  NodeConfig node = NodeOf(setup, processes, 0, nullptr, abort, tensors);
  WatchdogConfig watchdog_config = WatchdogOf(setup.plan->config(), node);
  const auto waits = node.group_waits;  // outlives the groups
  const auto writer = node.writer;
  SystemConfig system_config(tensors, false);
  caf::actor_system system(system_config);
  caf::scoped_actor self(system);
  Node handle = system.spawn(RunNode, std::move(node));
  watchdog_config.stalled = [handle](std::chrono::nanoseconds since) {
    caf::anon_send(handle, Stalled{since.count()});
  };
  JobEnd end;
  const auto guard = EndInTime(*abort);
  const auto directory = GuardDirectory(setup.run_directory, abort);
  {
    const Watchdog watchdog(std::move(watchdog_config));
    ListenToUser(setup, handle);
    end = Await(self, handle);
    if (setup.feed != nullptr) setup.feed->Forget();
    if (setup.interrupt != nullptr) setup.interrupt->OnSignal(nullptr);
  }
  self->send_exit(handle, caf::exit_reason::user_shutdown);
  // A failed job does not wait for the disk: the thread ends with the process.
  if (!end.failure.empty()) static_cast<void>(new std::shared_ptr<TaskThread>(writer));
  return end.failure;
}

}  // namespace troupe
