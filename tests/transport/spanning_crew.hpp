// Runs one thread per member of groups that span the processes of a memory network, and operations
// whose results are known.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/transport/crew.hpp"
#include "tests/transport/memory_plane.hpp"
#include "transport/group.hpp"

namespace troupe::testing {

struct GroupSpec {
  std::string name;
  std::vector<ProcessId> homes;
};

struct SpanningOptions {
  unsigned seed = 1;
  std::shared_ptr<AbortSignal> abort = std::make_shared<AbortSignal>();
  GroupWaits* waits = nullptr;
  std::function<void(MemoryNetwork&)> prepare = {};
  std::function<void(MemoryNetwork&)> inspect = {};  ///< after the run
};

/// Runs `body` once per member of every group, as RunGroup does. Result[g][i] is the outcome of
/// member i of group g. Faults of the network, and messages left after an orderly run, are added to
/// the outcome of the very first member.
inline std::vector<std::vector<std::string>> RunSpanning(
    const std::vector<GroupSpec>& groups,
    const std::function<void(Communicator&, const GroupSpec&)>& body,
    const SpanningOptions& options = {}) {
  int num_processes = 1;
  for (const GroupSpec& group : groups)
    for (const ProcessId home : group.homes) num_processes = std::max(num_processes, home + 1);
  std::vector<std::vector<std::string>> outcomes(groups.size());
  MemoryNetwork network(num_processes, options.abort, options.seed);
  if (options.prepare) options.prepare(network);
  {
    const Watchdog watchdog(options.abort);
    std::vector<std::thread> threads;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const GroupSpec& spec = groups[g];
      outcomes[g].resize(spec.homes.size(), "no view in its process");
      for (int process = 0; process < num_processes; ++process) {
        auto members =
            MakeGroup(spec.name, spec.homes, network.plane(process), options.abort, options.waits);
        for (std::size_t i = 0; i < members.size(); ++i)
          if (members[i] != nullptr)
            threads.emplace_back([&body, &spec, outcome = &outcomes[g][i],
                                  member = std::move(members[i])]() mutable {
              *outcome = OutcomeOf([&] { body(*member, spec); });
              member.reset();
            });
      }
    }
    for (std::thread& thread : threads) thread.join();
  }
  if (!network.fault().empty()) outcomes[0][0] += ", fault: " + network.fault();
  if (!options.abort->raised() && network.num_unmatched() > 0)
    outcomes[0][0] += ", unmatched: " + std::to_string(network.num_unmatched());
  if (options.inspect) options.inspect(network);
  return outcomes;
}

/// The same for one group "g".
inline std::vector<std::string> RunSpanning(const std::vector<ProcessId>& homes,
                                            const std::function<void(Communicator&)>& body,
                                            const SpanningOptions& options = {}) {
  return RunSpanning(
      {{"g", homes}}, [&](Communicator& group, const GroupSpec&) { body(group); }, options)[0];
}

}  // namespace troupe::testing
