#include "trace/analyze/collectives.hpp"

#include <algorithm>
#include <map>

#include "trace/analyze/table.hpp"

namespace troupe {

namespace {

struct Sum {
  std::int64_t number = 0;
  std::int64_t ns = 0;
};
using SumsByKind = std::map<WorkKind, Sum>;

/// Of all concurrent work in that time, by module.
std::map<std::string, SumsByKind> SumsOf(const TraceIndex& index, std::int64_t begin_ns,
                                         std::int64_t end_ns) {
  std::map<std::string, SumsByKind> modules;
  for (const TraceWork& work : index.trace().concurrent) {
    const PassRecord& pass = work.pass;
    const std::int64_t ns = std::min(pass.end_ns, end_ns) - std::max(pass.begin_ns, begin_ns);
    if (ns <= 0) continue;
    Sum& sum = modules[index.ModuleOf(pass.stage)][pass.kind];
    ++sum.number;
    sum.ns += ns;
  }
  return modules;
}

}  // namespace

std::vector<CollectiveTime> CollectiveTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
  std::vector<CollectiveTime> times;
  for (auto [module, sums] : SumsOf(index, begin_ns, end_ns)) {
    const auto [reduces, reduce_ns] = sums[WorkKind::kReduceBucket];
    const auto [gathers, gather_ns] = sums[WorkKind::kGather];
    const std::int64_t exposed_ns = sums[WorkKind::kCollectiveWait].ns;
    if (reduces + gathers == 0) continue;
    times.push_back({module, reduces, reduce_ns, gathers, gather_ns, exposed_ns});
  }
  return times;
}

std::vector<ActivationTime> ActivationTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
  std::vector<ActivationTime> times;
  for (auto [module, sums] : SumsOf(index, begin_ns, end_ns)) {
    const auto [outs, out_ns] = sums[WorkKind::kActivationsOut];
    const auto [backs, back_ns] = sums[WorkKind::kActivationsBack];
    const std::int64_t exposed_ns = sums[WorkKind::kActivationsWait].ns;
    if (outs + backs == 0) continue;
    times.push_back({module, outs, out_ns, backs, back_ns, exposed_ns});
  }
  return times;
}

std::string Format(const CollectiveTime& time) {
  const std::int64_t all_ns = time.reduce_ns + time.gather_ns;
  std::string text = "replicas of " + time.module + ": " + Counted(time.reduces, "sum") +
                     " of gradients in " + Duration(time.reduce_ns);
  if (time.gathers > 0) {
    text +=
        ", " + Counted(time.gathers, "gathering") + " of parameters in " + Duration(time.gather_ns);
  }
  return text + "; other work waited " + Duration(time.exposed_ns) + " for them (exposed " +
         PercentOf(time.exposed_ns, all_ns) + ")\n";
}

std::string Format(const ActivationTime& time) {
  return "activations of " + time.module + ": " + Counted(time.outs, "layer") + " out in " +
         Duration(time.out_ns) + ", " + std::to_string(time.backs) + " back in " +
         Duration(time.back_ns) + "; passes waited " + Duration(time.exposed_ns) +
         " for them (exposed " + PercentOf(time.exposed_ns, time.out_ns + time.back_ns) + ")\n";
}

}  // namespace troupe
