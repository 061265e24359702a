#include "app/preflight.hpp"

#include <algorithm>
#include <cstddef>
#include <future>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <vector>

#include "app/cause.hpp"
#include "files/usable_cores.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// OpenBLAS maps 128 MiB for each thread that multiplies, and retries forever if that fails; the
/// rest is for stacks and allocation arenas.
constexpr std::size_t kBytesPerRank = std::size_t{256} << 20;

/// A device, at most one feed and the collectives of replicas per rank, the director, the scheduler
/// and the clock of CAF.
int ThreadsFor(int ranks) { return 3 * ranks + 8; }

}  // namespace

void CheckResources(int ranks) {
  if (ranks == 0) return;  // of a process that only holds states in memory
  const std::size_t bytes = kBytesPerRank * static_cast<std::size_t>(ranks);
  void* space = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) {
    throw std::runtime_error("cannot reserve " + std::to_string(bytes >> 20) +
                             " MiB of address space for " + std::to_string(ranks) +
                             " ranks; is there a limit (ulimit -v)?");
  }
  munmap(space, bytes);

  std::promise<void> go;
  const std::shared_future<void> waiting = go.get_future().share();
  std::vector<std::jthread> threads;
  std::string refused;
  try {
    while (static_cast<int>(threads.size()) < ThreadsFor(ranks)) {
      threads.emplace_back([waiting] { waiting.wait(); });
    }
  } catch (const std::system_error& e) {
    refused = "cannot start " + std::to_string(ThreadsFor(ranks)) + " threads for " +
              std::to_string(ranks) + " ranks: " + e.what() + "; is there a limit (ulimit -u)?";
  }
  go.set_value();
  threads.clear();
  if (!refused.empty()) throw std::runtime_error(refused);
}

void WarnOfCores(const Config& config, int ranks) {
  const bool computes = std::ranges::any_of(
      config.modules, [](const ModuleConfig& m) { return m.model->computes(); });
  if (!computes || config.cluster.backend != Backend::kCpu) return;
  const int cores = UsableCores();
  if (ranks <= cores) return;
  PrintWarning(RanksOnCores(ranks, cores) +
               ": ranks that share a core take turns, so steps and bubbles are longer than the "
               "layout requires");
}

void WarnOfMirrors(const CheckpointConfig& config, int restarts, int processes) {
  if (config.replicas == 0) return;
  const std::string no_effect = "checkpoint.replicas has no effect ";
  if (processes == 1) return PrintWarning(no_effect + "in a job of one process");
  if (restarts == 0) PrintWarning(no_effect + "without --restarts: a loss ends the job");
  if (config.replicas >= processes) {
    PrintWarning("checkpoint.replicas = " + std::to_string(config.replicas) + ": there are only " +
                 std::to_string(processes - 1) + " other processes to hold mirrors");
  }
}

}  // namespace troupe
