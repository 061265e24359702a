// Puts together what several processes have noted: on one clock, with causes across processes.
#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "trace/recorder.hpp"

namespace troupe {
namespace {

std::int64_t TakeNumber(std::string_view& text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return error == std::errc() ? number : -1;
}

/// Makes `list[index]` be there. A file may say anything: nobody has a million stages.
template <class T>
T* At(std::vector<T>& list, std::int64_t index) {
  constexpr std::int64_t kMost = 1 << 20;
  if (index < 0 || index >= kMost) return nullptr;
  if (index >= std::ssize(list)) list.resize(static_cast<std::size_t>(index) + 1);
  return &list[static_cast<std::size_t>(index)];
}

/// What all processes still hold. Rings that are full have lost different times: what only some of
/// them know would read as waits that never were.
struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t last_cut_round = -1;  ///< work of it began before that

  bool Holds(const TraceRecord& record) const {
    if (begin_ns == 0) return true;
    if (record.round >= 0 && record.round <= last_cut_round) return false;
    return std::max(record.sent_ns, record.begin_ns) >= begin_ns;
  }
};

Window WholeWindow(const std::vector<TraceFile>& files) {
  Window window;
  for (const TraceFile& file : files) {
    if (file.noted <= file.capacity || file.records.empty()) continue;
    const TraceRecord& oldest = file.records.front();
    window.begin_ns =
        std::max(window.begin_ns, std::max(oldest.sent_ns, oldest.begin_ns) + file.clock_offset_ns);
  }
  if (window.begin_ns == 0) return window;
  for (const TraceFile& file : files) {
    for (const TraceRecord& record : file.records) {
      if (record.kind == RecordKind::kWork &&
          record.begin_ns + file.clock_offset_ns < window.begin_ns) {
        window.last_cut_round = std::max<std::int64_t>(window.last_cut_round, record.round);
      }
    }
  }
  return window;
}

/// Puts the files of all processes together.
class Merger {
 public:
  /// Of all files, before the records of any: messages name actors of other processes.
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
        work_.push_back(record);
      } else {
        answered_[{record.sender, record.receiver, record.request}] = record;
      }
    }
  }

  RunTrace Finish(const std::string& run) {
    trace_.run = run;
    for (const auto& [number, name] : all_processes_) {
      const auto there = [&](const TraceProcess& p) { return p.name == name; };
      if (std::none_of(trace_.processes.begin(), trace_.processes.end(), there)) {
        trace_.missing.push_back(name);
      }
    }
    IndexHandlings();
    ResolveCauses();
    FillFromRequests();
    SetLinks();
    AddWork();
    SortByTime();
    return std::move(trace_);
  }

 private:
  using Request = std::tuple<ActorNumber, ActorNumber, std::uint64_t>;

  void Name(const TraceName& line, TraceProcess& process, int index) {
    switch (line.kind) {
      case 'P':
        process.name = line.text;
        break;
      case 'H':
        process.host = line.text;
        break;
      case 'Q':
        all_processes_[line.number] = line.text;
        break;
      case 'A':
        actors_[static_cast<ActorNumber>(line.number)] = static_cast<int>(trace_.actors.size());
        trace_.actors.push_back({line.text, index});
        break;
      case 'T':
        if (auto* type = At(trace_.types, line.number)) *type = line.text;
        break;
      case 'S':
        if (auto* stage = At(trace_.stages, line.number)) *stage = line.text;
        break;
      case 'L':
        NameLink(line);
        break;
      default:
        break;
    }
  }

  void NameLink(const TraceName& line) {
    auto* const link = At(trace_.links, line.number);
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
    message.mailbox = record.mailbox;
    by_id_[record.id] = static_cast<int>(records_.size());
    records_.push_back(record);
    trace_.messages.push_back(message);
  }

  /// Who handled what when, by actor, and who sent which requests from there.
  void IndexHandlings() {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const TraceRecord& record = records_[i];
      if (record.begin_ns != 0) handlings_[record.receiver].push_back(static_cast<int>(i));
      if (record.request != 0 && record.answer == 0) {
        requests_[{record.sender, record.receiver, record.request}] = static_cast<int>(i);
      }
    }
    for (auto& [actor, list] : handlings_) {
      std::sort(list.begin(), list.end(), [&](int a, int b) {
        return records_[Index(a)].begin_ns < records_[Index(b)].begin_ns;
      });
      for (const int i : list) {
        const TraceRecord& record = records_[Index(i)];
        if (record.last_request != record.first_request) senders_[record.receiver].push_back(i);
      }
    }
  }

  static std::size_t Index(int i) { return static_cast<std::size_t>(i); }

  /// The handling in which `actor` sent its request `number`; -1: not known.
  int SenderOfRequest(ActorNumber actor, std::uint64_t number) const {
    const auto found = senders_.find(actor);
    if (found == senders_.end()) return -1;
    const auto& list = found->second;
    // Numbers grow with time.
    const auto at = std::lower_bound(list.begin(), list.end(), number, [&](int i, std::uint64_t n) {
      return records_[Index(i)].last_request < n;
    });
    if (at == list.end() || records_[Index(*at)].first_request >= number) return -1;
    return *at;
  }

  /// The last handling of `actor` that had begun by then; -1: not known.
  int HandlingAt(ActorNumber actor, std::int64_t at_ns) const {
    const auto found = handlings_.find(actor);
    if (found == handlings_.end()) return -1;
    const auto& list = found->second;
    const auto after =
        std::upper_bound(list.begin(), list.end(), at_ns,
                         [&](std::int64_t t, int i) { return t < records_[Index(i)].begin_ns; });
    return after == list.begin() ? -1 : *(after - 1);
  }

  /// A message from another process says who sent it, not in which handling.
  void ResolveCauses() {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const TraceRecord& record = records_[i];
      TraceMessage& message = trace_.messages[i];
      std::uint64_t cause = record.cause;
      const bool remote = (record.sender >> kActorBits) != (record.receiver >> kActorBits);
      if (cause != 0 || !remote || record.sender == 0) {
        const auto found = by_id_.find(cause);
        message.cause = found == by_id_.end() ? -1 : found->second;
        continue;
      }
      std::int64_t sent_ns = 0;
      if (record.answer != 0) {
        const auto left = answered_.find({record.sender, record.receiver, record.request});
        if (left != answered_.end()) {
          sent_ns = left->second.sent_ns;
          const auto found = by_id_.find(left->second.cause);
          message.cause = found == by_id_.end() ? -1 : found->second;
        } else {
          const auto asked = requests_.find({record.receiver, record.sender, record.request});
          if (asked != requests_.end()) message.cause = asked->second;
        }
      } else if (record.request != 0) {
        message.cause = SenderOfRequest(record.sender, record.request);
      }
      if (message.cause < 0) message.cause = HandlingAt(record.sender, record.arrived_ns);
      if (sent_ns == 0 && message.cause >= 0) {
        sent_ns = trace_.messages[Index(message.cause)].end_ns;
      }
      // Clocks agree to a few microseconds only: nothing arrives before it was sent.
      if (sent_ns > 0) message.sent_ns = std::min(sent_ns, record.arrived_ns);
    }
  }

  /// Answers often say less than the question did.
  void FillFromRequests() {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      const TraceRecord& record = records_[i];
      TraceMessage& message = trace_.messages[i];
      if (record.answer == 0 || (message.unit >= 0 && message.round >= 0)) continue;
      const auto asked = requests_.find({record.receiver, record.sender, record.request});
      if (asked == requests_.end()) continue;
      const TraceMessage& request = trace_.messages[Index(asked->second)];
      if (message.unit < 0) message.unit = request.unit;
      if (message.round < 0) message.round = request.round;
    }
    RoundsOfUnits();
  }

  /// Boundary messages know their unit only; the work on it knows the round.
  void RoundsOfUnits() {
    std::unordered_map<std::int64_t, std::int64_t> rounds;
    for (const TraceRecord& record : work_) {
      const auto kind = static_cast<WorkKind>(record.work);
      if (kind == WorkKind::kForward || kind == WorkKind::kBackward) {
        rounds.emplace(record.unit, record.round);
      }
    }
    for (TraceMessage& message : trace_.messages) {
      if (message.round >= 0 || message.unit < 0) continue;
      const auto found = rounds.find(message.unit);
      if (found != rounds.end()) message.round = found->second;
    }
  }

  /// "stage vision.s0 dp1" -> "vision.s0"; empty for others.
  static std::string_view StageOf(const std::string& actor) {
    if (actor.rfind("stage ", 0) != 0) return {};
    const std::string_view rest = std::string_view(actor).substr(6);
    return rest.substr(0, rest.find(' '));
  }
  /// "leader vision>language/source.0" and "phase vision>language" -> "vision>language".
  static std::string_view EdgeOf(const std::string& actor) {
    for (const std::string_view prefix : {"leader ", "phase "}) {
      if (actor.rfind(prefix, 0) != 0) continue;
      const std::string_view rest = std::string_view(actor).substr(prefix.size());
      return rest.substr(0, rest.find('/'));
    }
    return {};
  }

  void SetLinks() {
    std::map<std::string, int, std::less<>> boundaries;
    std::map<std::pair<std::string, std::string>, int> hops;
    for (std::size_t l = 0; l < trace_.links.size(); ++l) {
      const TraceLink& link = trace_.links[l];
      if (link.boundary) boundaries.emplace(link.name, static_cast<int>(l));
      if (link.from < 0 || link.from >= std::ssize(trace_.stages)) continue;
      if (link.to < 0 || link.to >= std::ssize(trace_.stages)) continue;
      hops.emplace(std::pair(trace_.stages[Index(link.from)], trace_.stages[Index(link.to)]),
                   static_cast<int>(l));
    }
    std::map<std::pair<int, int>, int> known;
    for (TraceMessage& message : trace_.messages) {
      if (message.sender < 0 || message.receiver < 0) continue;
      const auto [at, added] = known.emplace(std::pair(message.sender, message.receiver), -1);
      if (added) {
        const std::string& from = trace_.actors[Index(message.sender)].name;
        const std::string& to = trace_.actors[Index(message.receiver)].name;
        for (const std::string_view edge : {EdgeOf(from), EdgeOf(to)}) {
          const auto found = boundaries.find(edge);
          if (!edge.empty() && found != boundaries.end()) at->second = found->second;
        }
        for (const auto& pair :
             {std::pair(StageOf(from), StageOf(to)), std::pair(StageOf(to), StageOf(from))}) {
          const auto found = hops.find({std::string(pair.first), std::string(pair.second)});
          if (found != hops.end() && at->second < 0) at->second = found->second;
        }
      }
      message.link = at->second;
    }
  }

  void AddWork() {
    for (const TraceRecord& record : work_) {
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
      work.memory_bytes = static_cast<std::int64_t>(record.memory_kib) * 1024;
      const auto found = by_id_.find(record.cause);
      if (found != by_id_.end()) work.message = found->second;
      trace_.work.push_back(work);
    }
  }

  void SortByTime() {
    std::vector<int> order(trace_.messages.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return trace_.messages[Index(a)].sent_ns < trace_.messages[Index(b)].sent_ns;
    });
    std::vector<int> place(order.size());
    std::vector<TraceMessage> sorted;
    sorted.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[Index(order[i])] = static_cast<int>(i);
      sorted.push_back(trace_.messages[Index(order[i])]);
    }
    trace_.messages = std::move(sorted);
    const auto moved = [&](int& index) {
      if (index >= 0) index = place[Index(index)];
    };
    std::int64_t origin = trace_.messages.empty() ? 0 : trace_.messages.front().sent_ns;
    for (TraceWork& work : trace_.work) {
      moved(work.message);
      if (origin == 0 || work.pass.begin_ns < origin) origin = work.pass.begin_ns;
    }
    std::stable_sort(
        trace_.work.begin(), trace_.work.end(),
        [](const TraceWork& a, const TraceWork& b) { return a.pass.begin_ns < b.pass.begin_ns; });
    for (TraceMessage& message : trace_.messages) {
      moved(message.cause);
      message.sent_ns -= origin;
      message.arrived_ns -= origin;
      if (message.begin_ns >= 0) message.begin_ns -= origin;
      if (message.end_ns >= 0) message.end_ns -= origin;
    }
    for (TraceWork& work : trace_.work) {
      work.pass.begin_ns -= origin;
      work.pass.end_ns -= origin;
    }
    trace_.origin_ns = origin;
  }

  RunTrace trace_;
  std::map<std::int64_t, std::string> all_processes_;
  std::unordered_map<ActorNumber, int> actors_;
  std::unordered_map<std::uint64_t, int> by_id_;
  std::vector<TraceRecord> records_;  ///< of messages, as trace_.messages
  std::vector<TraceRecord> work_;
  std::map<Request, TraceRecord> answered_;
  std::map<Request, int> requests_;  ///< sender, receiver, number
  std::unordered_map<ActorNumber, std::vector<int>> handlings_;
  std::unordered_map<ActorNumber, std::vector<int>> senders_;
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
