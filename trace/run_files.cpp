#include "trace/run_files.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe {
namespace {

/// The name of the process, from its file.
std::string ProcessIn(const TraceFile& file) {
  const auto name = std::ranges::find(file.names, 'P', &TraceName::kind);
  return name == file.names.end() ? "process " + std::to_string(file.process) : name->text;
}

bool HasOwnName(const NamedTraceFile& one) {
  return one.name == ProcessIn(one.file) + kTraceExtension;
}

/// Name lines that are the same in every process of a job.
std::vector<std::string> AgreedIn(const TraceFile& file, char kind) {
  std::vector<std::string> lines;
  for (const TraceName& name : file.names) {
    if (name.kind == kind) lines.push_back(std::to_string(name.number) + " " + name.text);
  }
  return lines;
}

/// The first kind of names in which the jobs of `file` and `other` differ; empty: they agree.
std::string DifferenceOf(const TraceFile& file, const TraceFile& other) {
  if (file.processes != other.processes) return "processes";
  const std::pair<char, const char*> kinds[] = {
      {'Q', "processes"}, {'S', "stages"}, {'L', "links"}, {'T', "types of messages"}};
  for (const auto& [kind, what] : kinds) {
    if (AgreedIn(file, kind) != AgreedIn(other, kind)) return what;
  }
  return "";
}

struct Span {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
};

/// The time span of its records, on the clock of process 0.
Span SpanOf(const TraceFile& file) {
  Span span;
  for (const TraceRecord& record : file.records) {
    const std::int64_t begin = std::max(record.arrived_ns, record.begin_ns);
    span.first_ns = std::min(span.first_ns, begin + file.clock_offset_ns);
    span.last_ns = std::max(span.last_ns, std::max(begin, record.end_ns) + file.clock_offset_ns);
  }
  return span;
}

/// The reason why `file` belongs to another run than `first`; empty: it may belong to the same.
std::string WhyForeign(const TraceFile& file, const TraceFile& first) {
  const std::string difference = DifferenceOf(file, first);
  if (!difference.empty()) return "its job has other " + difference;
  const Span own = SpanOf(file);
  const Span its = SpanOf(first);
  if (file.records.empty() || first.records.empty()) return "";
  if (own.last_ns < its.first_ns) return "it ended before the other began";
  if (own.first_ns > its.last_ns) return "it began after the other ended";
  return "";
}

}  // namespace

RunFiles ChooseRunFiles(std::vector<NamedTraceFile> all) {
  std::ranges::stable_sort(all, [](const NamedTraceFile& a, const NamedTraceFile& b) {
    if (a.file.process != b.file.process) return a.file.process < b.file.process;
    if (HasOwnName(a) != HasOwnName(b)) return HasOwnName(a);
    return a.name < b.name;
  });
  RunFiles chosen;
  std::vector<const NamedTraceFile*> kept;
  for (const NamedTraceFile& one : all) {
    const auto skip = [&](const std::string& why) {
      chosen.skipped.push_back(one.name + " is left out: " + why);
    };
    if (!kept.empty() && kept.back()->file.process == one.file.process) {
      skip(kept.back()->name + " is also of process " + std::to_string(one.file.process) + ", " +
           ProcessIn(one.file));
      continue;
    }
    const std::string why = kept.empty() ? "" : WhyForeign(one.file, kept.front()->file);
    if (why.empty()) {
      kept.push_back(&one);
    } else {
      skip("it belongs to another run than " + kept.front()->name + ": " + why);
    }
  }
  for (const NamedTraceFile* one : kept) chosen.files.push_back(one->file);
  return chosen;
}

}  // namespace troupe
