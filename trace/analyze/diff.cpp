#include "trace/analyze/diff.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "trace/analyze/critical.hpp"
#include "trace/analyze/median.hpp"
#include "trace/analyze/table.hpp"
#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

using Samples = std::map<std::string, std::vector<std::int64_t>>;
using Medians = std::map<std::string, std::int64_t>;

/// What is compared of one run.
struct Side {
  std::int64_t step_ns = 0;
  Medians path;
  Medians work;
  Medians edges;
  Medians waits;
};

/// Steps in which something did not happen count as 0 when `steps` is not 0.
Medians Finish(Samples samples, std::size_t steps = 0) {
  Medians medians;
  for (auto& [what, values] : samples) {
    if (values.size() < steps) values.resize(steps, 0);
    medians[what] = Median(std::move(values));
  }
  return medians;
}

/// Idle time before the work of a step, a device's share of it. `until` is where the last work of
/// each rank ended.
void AddWaits(const TraceIndex& index, const StepSpan& span, std::map<int, std::int64_t>& until,
              Samples& samples) {
  std::map<std::pair<int, std::string>, std::int64_t> waits;
  std::map<int, std::set<int>> ranks;
  for (const int w : index.WorkIn(span.round)) {
    const TraceWork& work = index.work(w);
    const PassRecord& pass = work.pass;
    ranks[pass.stage].insert(pass.rank);
    std::int64_t& end_ns = until.try_emplace(pass.rank, span.begin_ns).first->second;
    end_ns = std::max(end_ns, span.begin_ns);
    if (pass.begin_ns > end_ns) {
      const int start = StartOf(index, work);
      waits[{pass.stage, start < 0 ? "?" : DescribeEdge(index, start)}] += pass.begin_ns - end_ns;
    }
    end_ns = std::max(end_ns, pass.end_ns);
  }
  for (const auto& [key, ns] : waits) {
    samples[index.StageName(key.first) + " for " + key.second].push_back(
        ns / static_cast<std::int64_t>(ranks[key.first].size()));
  }
}

Side Measure(const TraceIndex& index, const Steps& steps) {
  if (steps.all().empty()) {
    throw std::invalid_argument(index.trace().run + ": there is no training step in the trace");
  }
  Side side;
  Samples path;
  Samples waits;
  std::vector<std::int64_t> lengths;
  std::map<int, std::int64_t> until;  // by rank
  for (const StepSpan& span : steps.all()) {
    lengths.push_back(span.end_ns - span.begin_ns);
    for (const auto& [bucket, ns] : BucketsOf(index, CriticalPathOf(index, span))) {
      path[bucket].push_back(ns);
    }
    AddWaits(index, span, until, waits);
  }
  Samples work;
  for (const TraceWork& one : index.trace().work) {
    if (steps.StepOf(one.pass.round) < 0) continue;
    work[ToString(one.pass.kind) + std::string(" of ") + index.StageName(one.pass.stage)].push_back(
        one.pass.end_ns - one.pass.begin_ns);
  }
  Samples edges;
  for (int i = 0; static_cast<std::size_t>(i) < index.trace().messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    if (m.link < 0 || m.begin_ns < 0 || steps.StepOf(index.RoundOf(i)) < 0) continue;
    edges[DescribeEdge(index, i)].push_back(m.begin_ns - m.sent_ns);
  }
  side.step_ns = Median(lengths);
  side.path = Finish(std::move(path), steps.all().size());
  side.waits = Finish(std::move(waits), steps.all().size());
  side.work = Finish(std::move(work));
  side.edges = Finish(std::move(edges));
  return side;
}

std::vector<Change> Changes(const Medians& before, const Medians& after) {
  std::map<std::string, Change> all;
  for (const auto& [what, ns] : before) all[what].before_ns = ns;
  for (const auto& [what, ns] : after) all[what].after_ns = ns;
  std::vector<Change> changes;
  for (auto& [what, change] : all) {
    change.what = what;
    changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::abs(a.delta_ns()) > std::abs(b.delta_ns());
  });
  return changes;
}

Table TableOf(const char* name, const std::vector<Change>& changes) {
  Table table{{name, "before ms", "after ms", "more ms"}, {}};
  for (const Change& change : changes) {
    const std::int64_t delta = change.delta_ns();
    table.rows.push_back({change.what, Cell::Number(Millis(change.before_ns)),
                          Cell::Number(Millis(change.after_ns)),
                          Cell::Number((delta > 0 ? "+" : "") + Millis(delta))});
  }
  return table;
}

std::vector<Change> Largest(std::vector<Change> changes, std::size_t count) {
  changes.resize(std::min(changes.size(), count));
  return changes;
}

}  // namespace

Diff Compare(const TraceIndex& before, const Steps& before_steps, const TraceIndex& after,
             const Steps& after_steps) {
  const Side a = Measure(before, before_steps);
  const Side b = Measure(after, after_steps);
  Diff diff{{"step", a.step_ns, b.step_ns},
            Changes(a.path, b.path),
            Changes(a.work, b.work),
            Changes(a.edges, b.edges),
            Changes(a.waits, b.waits)};
  Change rest{"rest (medians of parts are not parts of a median)", a.step_ns, b.step_ns};
  for (const Change& change : diff.path) {
    rest.before_ns -= change.before_ns;
    rest.after_ns -= change.after_ns;
  }
  diff.path.push_back(rest);
  return diff;
}

std::string Format(const Diff& diff, const std::string& before, const std::string& after) {
  const std::int64_t delta = diff.step.delta_ns();
  std::vector<Change> path = diff.path;
  path.push_back(diff.step);
  return "before: " + before + "\nafter:  " + after + "\nmedians over steps; a step takes " +
         (delta == 0 ? "as long" : Duration(std::abs(delta)) + (delta < 0 ? " less" : " more")) +
         "\n\n" + ToText(TableOf("on the critical path of a step", path)) + '\n' +
         ToText(TableOf("one piece of work", Largest(diff.work, 12))) + '\n' +
         ToText(TableOf("one message, until handled", Largest(diff.edges, 12))) + '\n' +
         ToText(TableOf("idle on one device in a step", Largest(diff.waits, 12)));
}

}  // namespace troupe
