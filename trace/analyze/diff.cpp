#include "trace/analyze/diff.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "trace/analyze/critical.hpp"
#include "trace/analyze/median.hpp"
#include "trace/analyze/table.hpp"
#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

using Key = std::pair<std::string, std::string>;  ///< module, quantity
using Samples = std::map<Key, std::vector<std::int64_t>>;
using MediansByKey = std::map<Key, std::int64_t>;

/// Names of stages in a comparison.
class Names {
 public:
  Names(const RunTrace& before, const RunTrace& after) {
    const auto others = StagesOf(after);
    for (const auto& [module, stages] : StagesOf(before)) {
      const auto found = others.find(module);
      if (found != others.end() && found->second != stages) cut_otherwise_.insert(module);
    }
  }
  /// "language.s0", or "language" if the two runs cut it into different stages.
  std::string Of(const TraceIndex& index, int stage) const {
    const std::string module = index.ModuleOf(stage);
    return cut_otherwise_.contains(module) ? module : index.StageName(stage);
  }
  /// The name of a link, or of its module if its stages cannot be compared.
  std::string Of(const TraceIndex& index, const TraceLink& link) const {
    const std::string module = index.ModuleOf(link.from);
    return link.boundary || !cut_otherwise_.contains(module) ? link.name : "stages of " + module;
  }

 private:
  static std::map<std::string, std::set<int>> StagesOf(const RunTrace& trace) {
    std::map<std::string, std::set<int>> stages;
    for (const StageId& stage : trace.stages) stages[stage.module].insert(stage.number);
    return stages;
  }

  std::set<std::string> cut_otherwise_;
};

/// The measurements of one run.
struct Side {
  std::int64_t step_ns = 0;
  MediansByKey path;
  MediansByKey work;
  MediansByKey edges;
  MediansByKey waits;
};

/// Steps without a sample count as 0.
MediansByKey MediansOverSteps(Samples samples, std::size_t steps) {
  for (auto& [key, values] : samples) values.resize(steps, 0);
  return Medians(std::move(samples));
}

/// Adds the idle time before the work of a step, averaged over devices. `until` holds the end of
/// each rank's last work.
void AddWaits(const TraceIndex& index, const Names& names, const StepSpan& span,
              std::map<int, std::int64_t>& until, Samples& samples) {
  std::map<std::pair<Key, std::string>, std::int64_t> waits;  // by stage, then cause
  std::map<Key, std::set<int>> ranks;
  for (const int w : index.WorkIn(span.round)) {
    const TraceWork& work = index.work(w);
    const PassRecord& pass = work.pass;
    const Key stage{index.ModuleOf(pass.stage), names.Of(index, pass.stage)};
    ranks[stage].insert(pass.rank);
    std::int64_t& end_ns = until.try_emplace(pass.rank, span.begin_ns).first->second;
    end_ns = std::max(end_ns, span.begin_ns);
    if (pass.begin_ns > end_ns) {
      const int start = StartOf(index, work);
      const std::string what = start < 0 ? "an unrecorded event" : DescribeWait(index, start);
      waits[{stage, what}] += pass.begin_ns - end_ns;
    }
    end_ns = std::max(end_ns, pass.end_ns);
  }
  for (const auto& [wait, ns] : waits) {
    const auto& [stage, what] = wait;
    samples[{stage.first, stage.second + " for " + what}].push_back(
        ns / static_cast<std::int64_t>(ranks[stage].size()));
  }
}

/// Time on the critical path of a step, by bucket (BucketsOf).
std::map<Key, std::int64_t> PathOf(const TraceIndex& index, const Names& names,
                                   const StepSpan& span) {
  std::map<Key, std::int64_t> buckets;
  for (const Segment& segment : CriticalPathOf(index, span).segments) {
    Key key{"", BucketOf(index, segment)};
    if (ShareOf(index, segment) == Share::kCompute) {
      const PassRecord& pass = index.work(segment.work).pass;
      key = {index.ModuleOf(pass.stage),
             std::string("compute ") + ToString(pass.kind) + " of " + names.Of(index, pass.stage)};
    }
    buckets[key] += segment.length_ns();
  }
  return buckets;
}

Side Measure(const TraceIndex& index, const Names& names, const Steps& steps) {
  if (steps.all().empty()) {
    throw std::invalid_argument(index.trace().run + ": the trace has no training step");
  }
  Side side;
  Samples path;
  Samples waits;
  std::vector<std::int64_t> lengths;
  std::map<int, std::int64_t> until;  // by rank
  for (const StepSpan& span : steps.all()) {
    lengths.push_back(span.length_ns());
    for (const auto& [bucket, ns] : PathOf(index, names, span)) path[bucket].push_back(ns);
    AddWaits(index, names, span, until, waits);
  }
  Samples work;
  for (const TraceWork& one : index.trace().work) {
    if (steps.StepOf(one.pass.round) < 0) continue;
    const int stage = one.pass.stage;
    work[{index.ModuleOf(stage), ToString(one.pass.kind) + (" of " + names.Of(index, stage))}]
        .push_back(one.pass.end_ns - one.pass.begin_ns);
  }
  Samples edges;
  for (int i = 0; At(i) < index.trace().messages.size(); ++i) {
    const TraceMessage& m = index.message(i);
    const TraceLink* const link = index.LinkOf(i);
    if (link == nullptr || m.begin_ns < 0 || steps.StepOf(index.RoundOf(i)) < 0) continue;
    const std::string what = index.TypeName(i) + " over " + names.Of(index, *link);
    edges[{link->boundary ? "" : index.ModuleOf(link->from), what}].push_back(m.begin_ns -
                                                                              m.sent_ns);
  }
  side.step_ns = Median(lengths);
  side.path = MediansOverSteps(std::move(path), steps.all().size());
  side.waits = MediansOverSteps(std::move(waits), steps.all().size());
  side.work = Medians(std::move(work));
  side.edges = Medians(std::move(edges));
  return side;
}

std::vector<Change> Changes(const MediansByKey& before, const MediansByKey& after) {
  std::map<Key, Change> all;
  for (const auto& [what, ns] : before) all[what].before_ns = ns;
  for (const auto& [what, ns] : after) all[what].after_ns = ns;
  std::vector<Change> changes;
  for (auto& [key, change] : all) {
    std::tie(change.module, change.what) = key;
    changes.push_back(change);
  }
  std::ranges::stable_sort(changes, std::greater(),
                           [](const Change& change) { return std::abs(change.delta_ns()); });
  return changes;
}

/// Changes that round to 0.000 ms do not count.
bool Changed(const Change& change) { return std::abs(change.delta_ns()) >= 500; }

/// At most `most` changes to print, the most changed modules first.
std::vector<Change> Grouped(std::vector<Change> changes, std::size_t most) {
  std::erase_if(changes, [](const Change& change) { return !Changed(change); });
  changes.resize(std::min(changes.size(), most));
  std::map<std::string, std::int64_t> largest;
  for (const Change& change : changes) {
    std::int64_t& ns = largest[change.module];
    ns = std::max(ns, std::abs(change.delta_ns()));
  }
  std::ranges::stable_sort(changes, [&](const Change& a, const Change& b) {
    return std::tuple(-largest[a.module], a.module) < std::tuple(-largest[b.module], b.module);
  });
  return changes;
}

std::string TableOf(const char* name, const std::vector<Change>& changes) {
  if (changes.empty()) return "";
  Table table{{name, "before ms", "after ms", "more ms"}, {}};
  for (const Change& change : changes) {
    const std::int64_t delta = change.delta_ns();
    table.rows.push_back({change.what, Cell::Number(Millis(change.before_ns)),
                          Cell::Number(Millis(change.after_ns)),
                          Cell::Number((delta > 0 ? "+" : "") + Millis(delta))});
  }
  return '\n' + ToText(table);
}

}  // namespace

Diff Compare(const TraceIndex& before, const Steps& before_steps, const TraceIndex& after,
             const Steps& after_steps) {
  const Names names(before.trace(), after.trace());
  const Side a = Measure(before, names, before_steps);
  const Side b = Measure(after, names, after_steps);
  Diff diff{{"", "step", a.step_ns, b.step_ns},
            Changes(a.path, b.path),
            Changes(a.work, b.work),
            Changes(a.edges, b.edges),
            Changes(a.waits, b.waits)};
  Change rest{"", "rest: difference between the step and the sum of the medians", a.step_ns,
              b.step_ns};
  for (const Change& change : diff.path) {
    rest.before_ns -= change.before_ns;
    rest.after_ns -= change.after_ns;
  }
  diff.path.push_back(rest);
  return diff;
}

const Change* MainChange(const Diff& diff) {
  // By size, and the rest is last.
  for (std::size_t i = 0; i + 1 < diff.path.size(); ++i) {
    const Change& change = diff.path[i];
    const bool same_way = (change.delta_ns() > 0) == (diff.step.delta_ns() > 0);
    if (same_way && Changed(change)) return &change;
  }
  return nullptr;
}

std::string Format(const Diff& diff) {
  constexpr std::size_t kMost = 12;
  std::vector<Change> path =
      Grouped({diff.path.begin(), diff.path.end() - (diff.path.empty() ? 0 : 1)}, diff.path.size());
  if (!diff.path.empty() && Changed(diff.path.back())) path.push_back(diff.path.back());
  path.push_back(diff.step);
  return TableOf("on the critical path of a step", path) +
         TableOf("one piece of work", Grouped(diff.work, kMost)) +
         TableOf("one message, until handled", Grouped(diff.edges, kMost)) +
         TableOf("idle on one device in a step", Grouped(diff.waits, kMost));
}

}  // namespace troupe
