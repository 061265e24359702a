#include "trace/analyze/collectives.hpp"

#include <algorithm>
#include <map>

#include "trace/analyze/table.hpp"

namespace troupe {

namespace {

/// Calls count(module, kind, ns) for all concurrent work in that time.
template <class Count>
void ForEachIn(const TraceIndex& index, std::int64_t begin_ns, std::int64_t end_ns, Count count) {
  for (const TraceWork& work : index.trace().concurrent) {
    const PassRecord& pass = work.pass;
    const std::int64_t ns = std::min(pass.end_ns, end_ns) - std::max(pass.begin_ns, begin_ns);
    if (ns > 0) count(index.ModuleOf(pass.stage), pass.kind, ns);
  }
}

template <class Time>
std::vector<Time> Named(std::map<std::string, Time> modules) {
  std::vector<Time> times;
  for (auto& [module, time] : modules) {
    time.module = module;
    times.push_back(std::move(time));
  }
  return times;
}

}  // namespace

std::vector<CollectiveTime> CollectiveTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
  std::map<std::string, CollectiveTime> modules;
  ForEachIn(index, begin_ns, end_ns,
            [&](const std::string& module, WorkKind kind, std::int64_t ns) {
              if (kind == WorkKind::kReduceBucket) {
                ++modules[module].reduces;
                modules[module].reduce_ns += ns;
              } else if (kind == WorkKind::kGather) {
                ++modules[module].gathers;
                modules[module].gather_ns += ns;
              } else if (kind == WorkKind::kCollectiveWait) {
                modules[module].exposed_ns += ns;
              }
            });
  std::erase_if(modules, [](const auto& m) { return m.second.reduces + m.second.gathers == 0; });
  return Named(std::move(modules));
}

std::vector<ActivationTime> ActivationTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
  std::map<std::string, ActivationTime> modules;
  ForEachIn(index, begin_ns, end_ns,
            [&](const std::string& module, WorkKind kind, std::int64_t ns) {
              if (kind == WorkKind::kActivationsOut) {
                ++modules[module].outs;
                modules[module].out_ns += ns;
              } else if (kind == WorkKind::kActivationsBack) {
                ++modules[module].backs;
                modules[module].back_ns += ns;
              } else if (kind == WorkKind::kActivationsWait) {
                modules[module].exposed_ns += ns;
              }
            });
  return Named(std::move(modules));
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
