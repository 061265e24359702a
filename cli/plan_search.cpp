#include "cli/plan_search.hpp"

#include <chrono>
#include <cstdio>

#include "layout/text.hpp"

namespace troupe {
namespace {

/// Reports simulations that go on for long.
PlanProgress LongProgress(std::chrono::steady_clock::time_point begin) {
  return [next = begin + std::chrono::seconds(3)](std::size_t number, std::size_t all) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now < next) return;
    next = now + std::chrono::seconds(3);
    std::fprintf(stderr, "simulates plan %zu of %zu\n", number + 1, all);
  };
}

}  // namespace

SearchedPlans SearchPlans(const Config& config, const JobDevices& devices, int ranks,
                          std::size_t top, const Workload& workload) {
  const auto begin = std::chrono::steady_clock::now();
  const SearchSpace space(config, devices, {.ranks = ranks, .average = AverageWork(workload)});
  SearchedPlans found{BestPlans(space, config, devices, top, LongProgress(begin), workload), {}};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  found.how = std::to_string(space.num_ways()) + " ways to run " + config.Sink().name + ", " +
              std::to_string(space.num_priced()) + " of them priced in full, searched in " +
              Formatted("%.2f s\n", took.count());
  return found;
}

}  // namespace troupe
