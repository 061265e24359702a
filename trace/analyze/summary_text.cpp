#include <algorithm>

#include "layout/ranks_text.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/analyze/table.hpp"

namespace troupe {
namespace {

double Share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string From(const std::string& on, const std::string& whom) {
  return whom.empty() ? on : on + " from " + whom;
}

/// The two longest waits that matter, a line each below the stage's own would be too many.
std::string MostlyFor(const StageTime& time) {
  std::string text;
  for (std::size_t i = 0; i < time.waits.size() && i < 2; ++i) {
    const WaitShare& wait = time.waits[i];
    if (Share(wait.total_ns, time.wall_ns) < 0.005) break;
    text += (i == 0 ? "" : ", ") + Percent(Share(wait.total_ns, time.wall_ns)) + " " +
            From(wait.on, wait.whom);
  }
  return text;
}

Table EdgeTable(const Summary& summary, const TraceIndex& index) {
  Table table{{"edge", "message", "messages", "bytes", "queued: median", "p99", "max"}, {}};
  bool unhandled = false;
  for (const EdgeTime& edge : summary.edges) unhandled = unhandled || edge.unhandled > 0;
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

Table WaitTable(const Summary& summary, const TraceIndex& index, const Steps& steps) {
  Table table{{"waited", "stage", "dp", "rank", "step", "before", "for"}, {}};
  for (const LongWait& wait : summary.waits) {
    const std::int64_t step = steps.StepOf(wait.round);
    table.rows.push_back({Cell::Number(Duration(wait.end_ns - wait.begin_ns)),
                          index.StageName(wait.stage), wait.dp, wait.rank,
                          step < 0 ? Cell("evaluation") : Cell(step), wait.work,
                          From(wait.on, wait.whom)});
  }
  return table;
}

Table ProcessTable(const Summary& summary, const RunTrace& trace) {
  Table table{{"process", "host", "pid", "records", "dropped", "torn", "clock", "most memory"}, {}};
  for (std::size_t p = 0; p < trace.processes.size(); ++p) {
    const TraceProcess& process = trace.processes[p];
    const std::int64_t memory = p < summary.memory_bytes.size() ? summary.memory_bytes[p] : 0;
    table.rows.push_back(
        {process.name, process.host, process.pid, static_cast<std::int64_t>(process.noted),
         static_cast<std::int64_t>(process.dropped), static_cast<std::int64_t>(process.torn),
         Cell::Number(Duration(process.clock_offset_ns)),
         Cell::Number(memory > 0 ? Bytes(memory) : "-")});
  }
  return table;
}

Table GpuMemoryTable(const Summary& summary, const RunTrace& trace) {
  Table table{{"rank", "process", "gpu", "most in use", "reserved", "peak"}, {}};
  const auto known = [](std::int64_t bytes) {
    return Cell::Number(bytes > 0 ? Bytes(bytes) : "-");
  };
  for (const RankMemory& rank : summary.gpu_memory) {
    const auto process = static_cast<std::size_t>(rank.process);
    const WorkMemory& most = rank.most;
    table.rows.push_back({rank.rank,
                          process < trace.processes.size() ? trace.processes[process].name : "-",
                          most.gpu, Cell::Number(Bytes(most.in_use_bytes)),
                          known(most.reserved_bytes), known(most.peak_bytes)});
  }
  return table;
}

}  // namespace

Table StageTable(const Summary& summary, const TraceIndex& index) {
  Table table{{"stage", "dp", "ranks", "busy", "other", "waiting", "bubble", "waits mostly for"},
              {}};
  for (const StageTime& time : summary.stages) {
    table.rows.push_back({index.StageName(time.stage), time.dp, RanksText(time.ranks),
                          Cell::Number(Percent(Share(time.own_ns, time.wall_ns))),
                          Cell::Number(Percent(Share(time.other_ns, time.wall_ns))),
                          Cell::Number(Percent(Share(time.idle_ns, time.wall_ns))),
                          Cell::Number(Percent(Share(time.bubble_ns, time.wall_ns))),
                          MostlyFor(time)});
  }
  return table;
}

std::string WhatIsMissing(const RunTrace& trace) {
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
  for (const std::string& process : trace.missing) add("nothing is there of " + process);
  if (!text.empty()) text = "missing: " + text + '\n';
  for (const std::string& line : trace.skipped) text += "not read: " + line + '\n';
  return text;
}

std::string Format(const Summary& summary, const TraceIndex& index, const Steps& steps) {
  const RunTrace& trace = index.trace();
  std::string text = WhatIsMissing(trace);
  std::string which = "no training step";
  if (!steps.all().empty()) {
    const std::int64_t first = steps.all().front().step;
    const std::int64_t last = steps.all().back().step;
    which = first == last ? "step " + std::to_string(first)
                          : "steps " + std::to_string(first) + "-" + std::to_string(last);
  }
  text += trace.run + ": " + which + ", " + std::to_string(trace.messages.size()) + " messages, " +
          std::to_string(trace.work.size()) + " pieces of work; below, the " +
          Duration(summary.end_ns - summary.begin_ns) + " of it\n\n";
  text += ToText(ProcessTable(summary, trace)) + '\n' + ToText(StageTable(summary, index));
  if (summary.ranks > 0) {
    text += "bubble " + Percent(summary.bubble()) + " of the time of " +
            std::to_string(summary.ranks) + (summary.ranks == 1 ? " rank\n" : " ranks together\n");
  }
  for (const OffloadTime& offload : summary.offloads) {
    text += Format(offload, summary.end_ns - summary.begin_ns);
  }
  if (!summary.gpu_memory.empty()) {
    text += "\nmemory of each rank's GPU\n" + ToText(GpuMemoryTable(summary, trace));
  }
  if (!summary.edges.empty()) text += '\n' + ToText(EdgeTable(summary, index));
  if (!summary.waits.empty())
    text += "\nlongest waits\n" + ToText(WaitTable(summary, index, steps));
  return text;
}

}  // namespace troupe
