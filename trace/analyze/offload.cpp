#include "trace/analyze/offload.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "trace/analyze/median.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

/// From the first begin to the last end over all ranks.
struct Stretch {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = -1;
  void Add(const PassRecord& pass) {
    begin_ns = std::min(begin_ns, pass.begin_ns);
    end_ns = std::max(end_ns, pass.end_ns);
  }
  bool any() const { return end_ns >= 0; }
};

struct Window {
  Stretch out;
  Stretch back;
  std::vector<const PassRecord*> exchanges;
};

/// The time for which the backward waited for the state alone.
std::int64_t Exposed(const Window& window) {
  Stretch exchanged;  // the exchange of the forward's rows ends before any state leaves
  for (const PassRecord* pass : window.exchanges) {
    if (pass->begin_ns > window.out.begin_ns) exchanged.Add(*pass);
  }
  return exchanged.any() ? std::max<std::int64_t>(0, window.back.end_ns - exchanged.end_ns) : 0;
}

}  // namespace

std::vector<OffloadTime> OffloadTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                        std::int64_t end_ns) {
  std::map<std::string, std::map<std::int64_t, Window>> modules;
  for (const TraceWork& work : index.trace().work) {
    const PassRecord& pass = work.pass;
    if (pass.begin_ns < begin_ns || pass.end_ns > end_ns) continue;
    if (IsForCheckpoint(pass.kind)) continue;
    if (!IsCopy(pass.kind) && pass.kind != WorkKind::kExchange) continue;
    Window& window = modules[index.ModuleOf(pass.stage)][pass.unit];
    if (pass.kind == WorkKind::kOffload) window.out.Add(pass);
    if (pass.kind == WorkKind::kRestore) window.back.Add(pass);
    if (pass.kind == WorkKind::kExchange) window.exchanges.push_back(&pass);
  }
  std::vector<OffloadTime> times;
  for (const auto& [module, windows] : modules) {
    OffloadTime time;
    time.module = module;
    std::vector<std::int64_t> outs;
    std::vector<std::int64_t> backs;
    for (const auto& [unit, window] : windows) {
      if (!window.out.any() || !window.back.any()) continue;
      ++time.windows;
      outs.push_back(window.out.end_ns - window.out.begin_ns);
      backs.push_back(window.back.end_ns - window.back.begin_ns);
      time.away_ns += std::max<std::int64_t>(0, window.back.begin_ns - window.out.end_ns);
      time.exposed_ns += Exposed(window);
    }
    if (time.windows == 0) continue;
    time.out_ns = Median(std::move(outs));
    time.back_ns = Median(std::move(backs));
    times.push_back(std::move(time));
  }
  return times;
}

std::string Format(const OffloadTime& offload, std::int64_t whole_ns) {
  return "state of " + offload.module + " offloaded in " + Counted(offload.windows, "window") +
         ": in all away for " + PercentOf(offload.away_ns, whole_ns) +
         " of the time; of a window, median: out in " + Duration(offload.out_ns) + ", back in " +
         Duration(offload.back_ns) + "; in all its backward waited " +
         Duration(offload.exposed_ns) + " for it (exposed " +
         PercentOf(offload.exposed_ns, whole_ns) + ")\n";
}

}  // namespace troupe
