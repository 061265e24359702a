// Merges the records of several processes: on one clock, with causes across processes.
#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>

#include "trace/merge_parts.hpp"

namespace troupe {
namespace {

/// Rejects larger numbers in a file: no job has a million cores or stages.
constexpr std::int64_t kMostEntries = 1 << 20;

std::int64_t TakeNumber(std::string_view& text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return error == std::errc() ? number : -1;
}

/// Returns 0 for a malformed number.
int CoresIn(std::string_view text) {
  const std::int64_t cores = TakeNumber(text);
  return cores > 0 && cores <= kMostEntries ? static_cast<int>(cores) : 0;
}

/// Extends `list` to hold `index` and returns the entry; null for an implausible index.
template <class T>
T* EntryAt(std::vector<T>& list, std::int64_t index) {
  if (index < 0 || index >= kMostEntries) return nullptr;
  if (index >= std::ssize(list)) list.resize(static_cast<std::size_t>(index) + 1);
  return &list[static_cast<std::size_t>(index)];
}

/// Merges the files of all processes.
class Merger {
 public:
  /// Runs on all files before any record is read: messages name actors of other processes.
  void AddNames(const TraceFile& file) {
    const int process = static_cast<int>(trace_.processes.size());
    TraceProcess& added = trace_.processes.emplace_back();
    added.pid = file.pid;
    added.noted = file.noted;
    added.dropped = file.noted > file.capacity ? file.noted - file.capacity : 0;
    added.torn = file.torn;
    added.clock_offset_ns = file.clock_offset_ns;
    for (const TraceName& name : file.names) Name(name, added, process);
  }

  void AddRecords(const TraceFile& file, const Window& window) {
    for (TraceRecord record : file.records) {
      for (std::int64_t* time :
           {&record.sent_ns, &record.arrived_ns, &record.begin_ns, &record.end_ns}) {
        if (*time != 0) *time += file.clock_offset_ns;
      }
      if (!window.Holds(record) || record.type >= trace_.types.size()) continue;
      if (record.kind == RecordKind::kMessage) {
        AddMessage(record);
      } else if (record.kind == RecordKind::kWork) {
        records_.work.push_back(record);
      } else {
        records_.answered[{record.sender, record.receiver, record.request}] = record;
      }
    }
  }

  RunTrace Finish(const std::string& run) {
    trace_.run = run;
    for (const auto& one : all_processes_) {
      const auto there = [&](const TraceProcess& p) { return p.name == one.second; };
      if (std::none_of(trace_.processes.begin(), trace_.processes.end(), there)) {
        trace_.missing.push_back(one.second);
      }
    }
    ResolveCauses(records_, trace_);
    SetLinks(trace_);
    AddWork();
    SortByTime(trace_);
    return std::move(trace_);
  }

 private:
  void Name(const TraceName& line, TraceProcess& process, int index) {
    switch (line.kind) {
      case 'P':
        process.name = line.text;
        break;
      case 'H':
        process.host = line.text;
        break;
      case 'C':
        process.cores = CoresIn(line.text);
        break;
      case 'Q':
        all_processes_[line.number] = line.text;
        break;
      case 'A':
        actors_[static_cast<ActorNumber>(line.number)] = static_cast<int>(trace_.actors.size());
        trace_.actors.push_back(MakeTraceActor(DecodeActor(line.text), index));
        break;
      case 'T':
        if (auto* type = EntryAt(trace_.types, line.number)) *type = line.text;
        break;
      case 'S':
        if (auto* stage = EntryAt(trace_.stages, line.number)) *stage = DecodeStage(line.text);
        break;
      case 'L':
        NameLink(line);
        break;
      default:
        break;
    }
  }

  void NameLink(const TraceName& line) {
    auto* const link = EntryAt(trace_.links, line.number);
    if (link == nullptr) return;
    std::string_view rest = line.text;
    link->from = static_cast<int>(TakeNumber(rest));
    link->to = static_cast<int>(TakeNumber(rest));
    const std::size_t blank = rest.find(' ');
    link->boundary = rest.substr(0, blank) == "boundary";
    if (blank != std::string_view::npos) link->name = rest.substr(blank + 1);
  }

  int ActorOf(ActorNumber number) const {
    const auto found = actors_.find(number);
    return found == actors_.end() ? -1 : found->second;
  }

  void AddMessage(const TraceRecord& record) {
    TraceMessage message;
    message.id = record.id;
    message.type = record.type;
    message.sender = ActorOf(record.sender);
    message.receiver = ActorOf(record.receiver);
    message.sent_ns = record.sent_ns;
    message.arrived_ns = record.arrived_ns;
    message.begin_ns = record.begin_ns == 0 ? -1 : record.begin_ns;
    message.end_ns = record.end_ns == 0 ? -1 : record.end_ns;
    message.round = record.round;
    message.unit = record.unit;
    message.bytes = record.bytes;
    message.step = record.step;
    message.credits = record.credits;
    message.asked = record.asked != 0;
    message.mailbox = record.mailbox;
    const bool known = static_cast<std::uint8_t>(record.role) < kNumMessageRoles;
    message.role = known ? record.role : MessageRole::kOther;
    records_.by_id[record.id] = static_cast<int>(records_.messages.size());
    records_.messages.push_back(record);
    trace_.messages.push_back(message);
  }

  void AddWork() {
    for (const TraceRecord& record : records_.work) {
      if (record.work == 0 || record.work > kNumWorkKinds) continue;
      if (record.stage < 0 || record.stage >= std::ssize(trace_.stages)) continue;
      TraceWork work;
      work.pass.unit = record.unit;
      work.pass.round = record.round;
      work.pass.begin_ns = record.begin_ns;
      work.pass.end_ns = record.end_ns;
      work.pass.stage = record.stage;
      work.pass.dp = record.dp;
      work.pass.rank = record.rank;
      work.pass.kind = static_cast<WorkKind>(record.work);
      work.memory = MemoryOf(record);
      work.cores = CoreTimeOf(record);
      const auto found = records_.by_id.find(record.cause);
      if (found != records_.by_id.end()) work.message = found->second;
      trace_.work.push_back(work);
    }
  }

  RunTrace trace_;
  std::map<std::int64_t, std::string> all_processes_;
  std::unordered_map<ActorNumber, int> actors_;
  MergedRecords records_;
};

}  // namespace

RunTrace MergeTraces(const std::vector<TraceFile>& files, const std::string& run) {
  Merger merger;
  for (const TraceFile& file : files) merger.AddNames(file);
  const Window window = WholeWindow(files);
  for (const TraceFile& file : files) merger.AddRecords(file, window);
  return merger.Finish(run);
}

}  // namespace troupe
