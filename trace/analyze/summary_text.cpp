#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "layout/text.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

double Fraction(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string Words(const WaitShare& wait, Detail detail) {
  if (detail == Detail::kPlain || wait.sender.empty()) return wait.what;
  return wait.on + " from " + wait.sender;
}

/// The two longest waits. More would not fit into the stage's line.
std::string MostlyFor(const StageTime& time, Detail detail) {
  std::map<std::string, std::int64_t> by_words;
  for (const WaitShare& wait : time.waits) by_words[Words(wait, detail)] += wait.total_ns;
  std::erase_if(by_words,
                [&](const auto& wait) { return Fraction(wait.second, time.wall_ns) < 0.005; });
  std::vector<std::pair<std::string, std::int64_t>> waits(by_words.begin(), by_words.end());
  std::ranges::stable_sort(waits, std::greater<>(), &std::pair<std::string, std::int64_t>::second);
  waits.resize(std::min<std::size_t>(waits.size(), 2));
  return Listed(waits, ", ", [&](const auto& wait) {
    return PercentOf(wait.second, time.wall_ns) + " " + wait.first;
  });
}

Table EdgeTable(const Summary& summary, const TraceIndex& index) {
  Table table{{"edge", "message", "messages", "bytes", "queued: median", "p99", "max"}, {}};
  const bool unhandled =
      std::ranges::any_of(summary.edges, [](const EdgeTime& edge) { return edge.unhandled > 0; });
  if (unhandled) table.columns.emplace_back("never handled");
  for (const EdgeTime& edge : summary.edges) {
    table.rows.push_back(
        {index.trace().links.at(static_cast<std::size_t>(edge.link)).name,
         index.trace().types.at(static_cast<std::size_t>(edge.type)), edge.messages,
         Cell::Number(Bytes(edge.bytes)), Cell::Number(Duration(edge.queue_median_ns)),
         Cell::Number(Duration(edge.queue_p99_ns)), Cell::Number(Duration(edge.queue_max_ns))});
    if (unhandled) table.rows.back().emplace_back(edge.unhandled);
  }
  return table;
}

Table WaitTable(const Summary& summary, const TraceIndex& index, const Steps& steps,
                Detail detail) {
  Table table{{"waited", "stage", "dp", "rank", "step", "before", "for"}, {}};
  for (const LongWait& wait : summary.waits) {
    const std::int64_t step = steps.StepOf(wait.round);
    table.rows.push_back({Cell::Number(Duration(wait.end_ns - wait.begin_ns)),
                          index.StageName(wait.stage), wait.dp, wait.rank,
                          step < 0 ? Cell("evaluation") : Cell(step), wait.work,
                          Words(wait.wait, detail)});
  }
  return table;
}

/// 0 is unknown.
Cell KnownBytes(std::int64_t bytes) { return Cell::Number(bytes > 0 ? Bytes(bytes) : "-"); }

Table ProcessTable(const Summary& summary, const RunTrace& trace) {
  Table table{
      {"process", "host", "pid", "cores", "records", "dropped", "torn", "clock", "most memory"},
      {}};
  for (std::size_t p = 0; p < trace.processes.size(); ++p) {
    const TraceProcess& process = trace.processes[p];
    const std::int64_t memory = p < summary.memory_bytes.size() ? summary.memory_bytes[p] : 0;
    table.rows.push_back({process.name, process.host, process.pid,
                          process.cores > 0 ? Cell(process.cores) : Cell::Number("-"),
                          static_cast<std::int64_t>(process.noted),
                          static_cast<std::int64_t>(process.dropped),
                          static_cast<std::int64_t>(process.torn),
                          Cell::Number(Duration(process.clock_offset_ns)), KnownBytes(memory)});
  }
  return table;
}

Table GpuMemoryTable(const Summary& summary, const RunTrace& trace) {
  Table table{{"rank", "process", "gpu", "most in use", "reserved", "peak"}, {}};
  for (const RankMemory& rank : summary.gpu_memory) {
    const auto process = static_cast<std::size_t>(rank.process);
    const WorkMemory& most = rank.most;
    table.rows.push_back({rank.rank,
                          process < trace.processes.size() ? trace.processes[process].name : "-",
                          most.gpu, Cell::Number(Bytes(most.in_use_bytes)),
                          KnownBytes(most.reserved_bytes), KnownBytes(most.peak_bytes)});
  }
  return table;
}

}  // namespace

Table StageTable(const Summary& summary, const TraceIndex& index, Detail detail) {
  Table table{{"stage", "dp", "ranks", "busy"}, {}};
  if (summary.cores.known()) table.columns.insert(table.columns.end(), {"computing", "no core"});
  table.columns.insert(table.columns.end(), {"other", "waiting", "bubble", "waits mostly for"});
  for (const StageTime& time : summary.stages) {
    const auto share = [&](std::int64_t ns) {
      return Cell::Number(ns < 0 ? "-" : PercentOf(ns, time.wall_ns));
    };
    std::vector<Cell> row = {index.StageName(time.stage), time.dp, RanksText(time.ranks),
                             share(time.own_ns)};
    if (summary.cores.known()) {
      row.push_back(share(time.cores.on_core_ns));
      row.push_back(share(time.cores.without_core_ns));
    }
    for (const std::int64_t ns : {time.other_ns, time.idle_ns, time.bubble_ns}) {
      row.push_back(share(ns));
    }
    row.emplace_back(MostlyFor(time, detail));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string RanksSharingCores(const TraceIndex& index) {
  struct Host {
    std::set<int> ranks;
    int cores = 0;
  };
  std::map<std::string, Host> hosts;  // processes of one host share its cores
  for (const TraceWork& work : index.trace().work) {
    const auto place = static_cast<std::size_t>(index.ProcessOf(work));
    if (place >= index.trace().processes.size()) continue;
    const TraceProcess& process = index.trace().processes[place];
    Host& host = hosts[process.host];
    host.ranks.insert(work.pass.rank);
    host.cores = std::max(host.cores, process.cores);
  }
  std::string places;
  for (const auto& [name, host] : hosts) {
    const auto ranks = static_cast<int>(host.ranks.size());
    if (host.cores == 0 || ranks <= host.cores) continue;
    places += (places.empty() ? "" : ", ") + RanksOnCores(ranks, host.cores) +
              (hosts.size() > 1 ? " on " + name : "");
  }
  return places;
}

std::string WaitedForCores(const Summary& summary, const TraceIndex& index) {
  const std::int64_t wall_ns = summary.end_ns - summary.begin_ns;
  const double share = Fraction(summary.cores.without_core_ns, wall_ns * summary.ranks);
  if (share < 0.01) return "";
  const std::string places = RanksSharingCores(index);
  return "their work had no core for " + Percent(share) + " of that time" +
         (places.empty() ? "" : " (" + places + ")") +
         ": bubbles and waits are longer than the layout requires\n";
}

std::string DescribeGaps(const RunTrace& trace) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  for (const TraceProcess& process : trace.processes) {
    if (process.dropped > 0) {
      add(process.name + " has overwritten its oldest " + std::to_string(process.dropped) + " of " +
          std::to_string(process.noted) + " records");
    }
    if (process.torn > 0) {
      add(process.name + " left " + std::to_string(process.torn) + " half-written");
    }
  }
  for (const std::string& process : trace.missing) add("no file of " + process);
  if (!text.empty()) text = "missing: " + text + '\n';
  for (const std::string& line : trace.skipped) text += "not read: " + line + '\n';
  return text;
}

std::string Format(const Summary& summary, const TraceIndex& index, const Steps& steps,
                   Detail detail) {
  const RunTrace& trace = index.trace();
  std::string text = DescribeGaps(trace);
  text += trace.run + ": " + steps.Text() + ", " + std::to_string(trace.messages.size()) +
          " messages, " + std::to_string(trace.work.size()) + " pieces of work; shares are of " +
          Duration(summary.end_ns - summary.begin_ns) + "\n\n";
  text += ToText(ProcessTable(summary, trace)) + '\n' + ToText(StageTable(summary, index, detail));
  if (summary.ranks > 0) {
    text += "bubble " + Percent(summary.bubble()) + " of the time of " +
            (summary.ranks == 1 ? "1 rank\n" : Counted(summary.ranks, "rank") + " together\n") +
            WaitedForCores(summary, index);
  }
  for (const OffloadTime& offload : summary.offloads) {
    text += Format(offload, summary.end_ns - summary.begin_ns);
  }
  for (const CollectiveTime& time : summary.collectives) text += Format(time);
  for (const ActivationTime& time : summary.activations) text += Format(time);
  text += Format(summary.checkpoints, index, summary.end_ns - summary.begin_ns);
  text += Format(summary.mirrors, summary.end_ns - summary.begin_ns);
  if (!summary.gpu_memory.empty()) {
    text += "\nmemory of each rank's GPU\n" + ToText(GpuMemoryTable(summary, trace));
  }
  if (!summary.edges.empty()) text += '\n' + ToText(EdgeTable(summary, index));
  if (!summary.waits.empty())
    text += "\nlongest waits\n" + ToText(WaitTable(summary, index, steps, detail));
  return text;
}

}  // namespace troupe
