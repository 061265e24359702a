#include "trace/analyze/collectives.hpp"

#include <algorithm>
#include <map>

#include "trace/analyze/table.hpp"

namespace troupe {

std::vector<CollectiveTime> CollectiveTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns) {
  std::map<std::string, CollectiveTime> modules;
  for (const TraceWork& work : index.trace().collectives) {
    const PassRecord& pass = work.pass;
    const std::int64_t ns = std::min(pass.end_ns, end_ns) - std::max(pass.begin_ns, begin_ns);
    if (ns <= 0) continue;
    CollectiveTime& time = modules[index.ModuleOf(pass.stage)];
    switch (pass.kind) {
      case WorkKind::kReduceBucket:
        ++time.reduces;
        time.reduce_ns += ns;
        break;
      case WorkKind::kGather:
        ++time.gathers;
        time.gather_ns += ns;
        break;
      default:
        time.exposed_ns += ns;
    }
  }
  std::vector<CollectiveTime> times;
  for (auto& [module, time] : modules) {
    time.module = module;
    if (time.reduces + time.gathers > 0) times.push_back(std::move(time));
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

}  // namespace troupe
