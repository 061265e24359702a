#include "trace/analyze/summary.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "trace/analyze/words.hpp"

namespace troupe {
namespace {

using Place = std::pair<int, int>;                                 ///< stage, dp
using Reason = std::tuple<std::string, std::string, std::string>;  ///< what, on, sender

struct RankTime {
  std::int64_t all_ns = 0;
  std::int64_t computed_ns = 0;
  std::int64_t until_ns = 0;           ///< end of its last work
  std::int64_t computed_until_ns = 0;  ///< end of its last computation
};

/// Exchanging rows and writing shards is not computation.
bool Computes(WorkKind kind) {
  return kind != WorkKind::kExchange && kind != WorkKind::kCheckpoint;
}

class Collector {
 public:
  Collector(const TraceIndex& index, std::int64_t begin_ns, std::int64_t end_ns)
      : index_(index),
        begin_ns_(begin_ns),
        end_ns_(end_ns),
        memory_(index.trace().processes.size(), 0) {}

  void AddWork(const TraceWork& work) {
    const PassRecord& pass = work.pass;
    const std::int64_t from = std::max(pass.begin_ns, begin_ns_);
    const std::int64_t until = std::min(pass.end_ns, end_ns_);
    if (until < from) return;
    AddMemory(work);
    if (IsCopy(pass.kind)) return;  // concurrent with the rank's work
    RankTime& rank =
        ranks_.try_emplace(pass.rank, RankTime{0, 0, begin_ns_, begin_ns_}).first->second;
    own_[{pass.stage, pass.dp}][pass.rank] += IsPass(pass.kind) ? until - from : 0;
    AddCores(work, from, until);
    if (from > rank.until_ns) AddWait(work, rank.until_ns, from);
    // Counts the time once if gradients are summed concurrently with other work.
    const auto add = [&](std::int64_t& sum_ns, std::int64_t& until_ns) {
      sum_ns += std::max<std::int64_t>(0, until - std::max(from, until_ns));
      until_ns = std::max(until_ns, until);
    };
    add(rank.all_ns, rank.until_ns);
    if (Computes(pass.kind)) add(rank.computed_ns, rank.computed_until_ns);
  }

  Summary Finish(std::size_t top) {
    Summary summary;
    summary.begin_ns = begin_ns_;
    summary.end_ns = end_ns_;
    summary.waits = std::move(long_waits_);
    summary.memory_bytes = std::move(memory_);
    for (const auto& [number, memory] : gpu_memory_) summary.gpu_memory.push_back(memory);
    summary.cores = cores_;
    summary.ranks = std::ssize(ranks_);
    for (const auto& [number, rank] : ranks_) summary.computed_ns += rank.computed_ns;
    for (const auto& [place, by_rank] : own_) {
      StageTime time;
      time.stage = place.first;
      time.dp = place.second;
      time.cores = own_cores_[place];
      for (const auto& [rank, own_ns] : by_rank) {
        const RankTime& all = ranks_.at(rank);
        time.ranks.push_back(rank);
        time.wall_ns += end_ns_ - begin_ns_;
        time.own_ns += own_ns;
        time.other_ns += all.all_ns - own_ns;
        time.idle_ns += end_ns_ - begin_ns_ - all.all_ns;
        time.bubble_ns += end_ns_ - begin_ns_ - all.computed_ns;
      }
      for (const auto& [reason, ns] : reasons_[place]) {
        const auto& [what, on, whom] = reason;
        time.waits.push_back({what, on, whom, ns});
      }
      std::ranges::stable_sort(time.waits, std::greater(), &WaitShare::total_ns);
      summary.stages.push_back(std::move(time));
    }
    std::ranges::sort(summary.waits, {}, [](const LongWait& wait) {
      return std::tuple(wait.begin_ns - wait.end_ns, wait.begin_ns, wait.rank);
    });
    summary.waits.resize(std::min(top, summary.waits.size()));
    return summary;
  }

 private:
  void AddMemory(const TraceWork& work) {
    const WorkMemory& memory = work.memory;
    const int process = index_.ProcessOf(work);
    const auto place = static_cast<std::size_t>(process);
    if (place < memory_.size()) memory_[place] = std::max(memory_[place], memory.in_use_bytes);
    if (!memory.on_gpu() || !memory.known()) return;
    RankMemory& rank = gpu_memory_[work.pass.rank];
    rank.rank = work.pass.rank;
    rank.process = process;
    rank.most.gpu = memory.gpu;
    rank.most.in_use_bytes = std::max(rank.most.in_use_bytes, memory.in_use_bytes);
    rank.most.reserved_bytes = std::max(rank.most.reserved_bytes, memory.reserved_bytes);
    rank.most.peak_bytes = std::max(rank.most.peak_bytes, memory.peak_bytes);
  }

  void AddCores(const TraceWork& work, std::int64_t from, std::int64_t until) {
    const PassRecord& pass = work.pass;
    const auto add = [&](std::int64_t& sum_ns, std::int64_t ns) {
      if (ns >= 0) sum_ns = std::max<std::int64_t>(sum_ns, 0) + PartOfTime(ns, pass, from, until);
    };
    const auto add_to = [&](CoreTime& sum) {
      add(sum.on_core_ns, work.cores.on_core_ns);
      add(sum.without_core_ns, work.cores.without_core_ns);
    };
    add_to(cores_);
    if (IsPass(pass.kind)) add_to(own_cores_[{pass.stage, pass.dp}]);
  }

  void AddWait(const TraceWork& work, std::int64_t from, std::int64_t until) {
    const PassRecord& pass = work.pass;
    const int start = StartOf(index_, work);
    WaitShare wait{"an unrecorded event", "", "", until - from};
    if (start >= 0) {
      wait.what = DescribeWait(index_, start);
      wait.on = DescribeEdge(index_, start);
      wait.sender = index_.ActorName(index_.message(start).sender);
    }
    reasons_[{pass.stage, pass.dp}][{wait.what, wait.on, wait.sender}] += until - from;
    long_waits_.push_back({pass.stage, pass.dp, pass.rank, pass.round, from, until,
                           Describe(index_, pass), std::move(wait)});
  }

  const TraceIndex& index_;
  std::int64_t begin_ns_;
  std::int64_t end_ns_;
  std::map<int, RankTime> ranks_;
  std::map<Place, std::map<int, std::int64_t>> own_;  ///< of every rank of the stage
  CoreTime cores_;
  std::map<Place, CoreTime> own_cores_;
  std::map<Place, std::map<Reason, std::int64_t>> reasons_;
  std::vector<LongWait> long_waits_;
  std::vector<std::int64_t> memory_;  ///< by process
  std::map<int, RankMemory> gpu_memory_;
};

/// Counts all messages of these steps, also those sent before: the first messages of a step arrive
/// while the previous one still runs.
std::vector<EdgeTime> EdgesOf(const TraceIndex& index, const std::vector<StepSpan>& spans) {
  std::set<std::int64_t> rounds;
  for (const StepSpan& span : spans) rounds.insert(span.round);
  struct Queue {
    EdgeTime edge;
    std::vector<std::int64_t> waits;
  };
  std::map<std::pair<int, int>, Queue> queues;  // by link, then type
  for (const TraceMessage& m : index.trace().messages) {
    if (m.link < 0 || (!spans.empty() && !rounds.contains(m.round))) continue;
    Queue& queue = queues[{m.link, m.type}];
    queue.edge.link = m.link;
    queue.edge.type = m.type;
    ++queue.edge.messages;
    queue.edge.bytes += m.bytes;
    if (m.begin_ns < 0) {
      ++queue.edge.unhandled;
    } else {
      queue.waits.push_back(m.begin_ns - m.arrived_ns);
    }
  }
  std::vector<EdgeTime> edges;
  for (auto& [key, queue] : queues) {
    EdgeTime& edge = queue.edge;
    auto& waits = queue.waits;
    std::ranges::sort(waits);
    if (!waits.empty()) {
      edge.queue_median_ns = waits[waits.size() / 2];
      edge.queue_p99_ns = waits[(waits.size() * 99 + 99) / 100 - 1];
      edge.queue_max_ns = waits.back();
    }
    edges.push_back(edge);
  }
  return edges;
}

}  // namespace

double Summary::bubble() const {
  const std::int64_t all_ns = (end_ns - begin_ns) * ranks;
  return all_ns > 0 ? 1.0 - static_cast<double>(computed_ns) / static_cast<double>(all_ns) : 0.0;
}

Summary Summarize(const TraceIndex& index, const std::vector<StepSpan>& spans, std::size_t top) {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = index.end_ns();
  if (!spans.empty()) {
    begin_ns = std::ranges::min(spans, {}, &StepSpan::begin_ns).begin_ns;
    end_ns = std::ranges::max(spans, {}, &StepSpan::end_ns).end_ns;
  }
  Collector collector(index, begin_ns, end_ns);
  for (const TraceWork& work : index.trace().work) collector.AddWork(work);
  Summary summary = collector.Finish(top);
  summary.edges = EdgesOf(index, spans);
  summary.offloads = OffloadTimesOf(index, begin_ns, end_ns);
  summary.collectives = CollectiveTimesOf(index, begin_ns, end_ns);
  summary.activations = ActivationTimesOf(index, begin_ns, end_ns);
  summary.checkpoints = CheckpointTimesOf(index, begin_ns, end_ns);
  summary.mirrors = MirrorTimesOf(index, begin_ns, end_ns);
  return summary;
}

}  // namespace troupe
