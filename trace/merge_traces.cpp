// Merges the records of several processes: on one clock, with causes across processes.
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "layout/at.hpp"
#include "trace/merge_causes.hpp"
#include "trace/recorder.hpp"

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

/// The time span that all processes still hold. Full rings have lost different spans; records of
/// only some processes would look like waits that never happened.
class Window {
 public:
  explicit Window(const std::vector<TraceFile>& files) {
    for (const TraceFile& file : files) {
      if (file.noted <= file.capacity || file.records.empty()) continue;
      const TraceRecord& oldest = file.records.front();
      begin_ns_ =
          std::max(begin_ns_, std::max(oldest.sent_ns, oldest.begin_ns) + file.clock_offset_ns);
    }
    if (begin_ns_ == 0) return;
    for (const TraceFile& file : files) {
      for (const TraceRecord& record : file.records) {
        if (record.kind == RecordKind::kWork &&
            record.begin_ns + file.clock_offset_ns < begin_ns_) {
          last_cut_round_ = std::max<std::int64_t>(last_cut_round_, record.round);
        }
      }
    }
  }

  bool Holds(const TraceRecord& record) const {
    if (begin_ns_ == 0) return true;
    if (record.round >= 0 && record.round <= last_cut_round_) return false;
    return std::max(record.sent_ns, record.begin_ns) >= begin_ns_;
  }

 private:
  std::int64_t begin_ns_ = 0;
  std::int64_t last_cut_round_ = -1;  ///< the last round with work before begin_ns_
};

/// The link between two stages.
using Hops = std::map<std::pair<int, int>, int>;

/// The link of a leader or a phase; -1: the trace does not have it.
int LinkOf(const RunTrace& trace, const ActorId& id) {
  const bool at_boundary = id.kind == ActorKind::kLeader || id.kind == ActorKind::kPhase;
  return at_boundary && id.link < std::ssize(trace.links) ? id.link : -1;
}

int LinkBetween(const RunTrace& trace, const Hops& hops, const ActorId& from, const ActorId& to) {
  for (const ActorId* id : {&to, &from}) {
    if (const int link = LinkOf(trace, *id); link >= 0) return link;
  }
  if (from.kind != ActorKind::kStage || to.kind != ActorKind::kStage) return -1;
  for (const auto& pair : {std::pair(from.stage, to.stage), std::pair(to.stage, from.stage)}) {
    const auto found = hops.find(pair);
    if (found != hops.end()) return found->second;
  }
  return -1;
}

/// Sets the link that every message crosses, from its two actors.
void SetLinks(RunTrace& trace) {
  Hops hops;
  for (std::size_t l = 0; l < trace.links.size(); ++l) {
    hops.emplace(std::pair(trace.links[l].from, trace.links[l].to), static_cast<int>(l));
  }
  std::map<std::pair<int, int>, int> known;
  for (TraceMessage& message : trace.messages) {
    if (message.sender < 0 || message.receiver < 0) continue;
    const auto [at, added] = known.emplace(std::pair(message.sender, message.receiver), -1);
    if (added) {
      at->second = LinkBetween(trace, hops, trace.actors[At(message.sender)].id,
                               trace.actors[At(message.receiver)].id);
    }
    message.link = at->second;
  }
}

/// The earliest time in the trace. The first message sent need not have it: the clocks of two hosts
/// are fitted, and a damaged record may hold any time.
std::int64_t EarliestOf(const RunTrace& trace) {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const TraceMessage& message : trace.messages) {
    earliest = std::min({earliest, message.sent_ns, message.arrived_ns});
    for (const std::int64_t ns : {message.begin_ns, message.end_ns}) {
      if (ns >= 0) earliest = std::min(earliest, ns);
    }
  }
  for (const TraceWork& work : trace.work) {
    earliest = std::min({earliest, work.pass.begin_ns, work.pass.end_ns});
  }
  return trace.messages.empty() && trace.work.empty() ? 0 : earliest;
}

/// Sorts messages by sent_ns and work by begin_ns, updates all indices, and subtracts the earliest
/// time from all times.
void SortByTime(RunTrace& trace) {
  std::vector<int> order(trace.messages.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) { return trace.messages[At(i)].sent_ns; });
  std::vector<int> place(order.size());
  std::vector<TraceMessage> sorted;
  sorted.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[At(order[i])] = static_cast<int>(i);
    sorted.push_back(trace.messages[At(order[i])]);
  }
  trace.messages = std::move(sorted);
  const auto moved = [&](int& index) {
    if (index >= 0) index = place[At(index)];
  };
  for (auto* list : {&trace.work, &trace.concurrent}) {
    for (TraceWork& work : *list) moved(work.message);
    std::ranges::stable_sort(*list, {}, [](const TraceWork& w) { return w.pass.begin_ns; });
  }
  const std::int64_t origin = EarliestOf(trace);
  for (TraceMessage& message : trace.messages) {
    moved(message.cause);
    message.sent_ns -= origin;
    message.arrived_ns -= origin;
    if (message.begin_ns >= 0) message.begin_ns -= origin;
    if (message.end_ns >= 0) message.end_ns -= origin;
  }
  for (auto* list : {&trace.work, &trace.concurrent}) {
    for (TraceWork& work : *list) {
      work.pass.begin_ns -= origin;
      work.pass.end_ns -= origin;
    }
  }
  trace.origin_ns = origin;
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
    for (const auto& [number, name] : all_processes_) {
      const auto found = std::ranges::find(trace_.processes, name, &TraceProcess::name);
      if (found == trace_.processes.end()) trace_.missing.push_back(name);
    }
    SetLinks(trace_);
    ResolveCauses(records_, trace_);
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
      case 'D':
        if (auto* source = EntryAt(trace_.sources, line.number)) *source = line.text;
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
    message.source = record.stage;
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
      (IsConcurrent(work.pass.kind) ? trace_.concurrent : trace_.work).push_back(work);
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
  const Window window(files);
  for (const TraceFile& file : files) merger.AddRecords(file, window);
  return merger.Finish(run);
}

}  // namespace troupe
