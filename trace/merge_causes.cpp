// Finds the cause, the time and the round of messages whose own records lack them.
#include "trace/merge_causes.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "layout/at.hpp"

namespace troupe {
namespace {

class Causes {
 public:
  Causes(const MergedRecords& records, RunTrace& trace) : records_(records), trace_(trace) {
    IndexHandlings();
  }

  /// A message from another process names its sender, but not the handler run that sent it.
  void ResolveCauses() {
    for (std::size_t i = 0; i < records_.messages.size(); ++i) {
      const TraceRecord& record = records_.messages[i];
      TraceMessage& message = trace_.messages[i];
      const bool remote = (record.sender >> kActorBits) != (record.receiver >> kActorBits);
      if (record.cause != 0 || !remote || record.sender == 0) {
        message.cause = IndexOf(record.cause);
        continue;
      }
      std::int64_t sent_ns = 0;
      if (record.answer != 0) {
        const auto left = records_.answered.find({record.sender, record.receiver, record.request});
        if (left != records_.answered.end()) {
          sent_ns = left->second.sent_ns;
          message.cause = IndexOf(left->second.cause);
        } else {
          const auto asked = requests_.find({record.receiver, record.sender, record.request});
          if (asked != requests_.end()) message.cause = asked->second;
        }
      } else if (record.request != 0) {
        message.cause = SenderOfRequest(record.sender, record.request);
      }
      if (message.cause < 0) message.cause = HandlingAt(record.sender, record.arrived_ns);
      if (sent_ns == 0 && message.cause >= 0) {
        sent_ns = trace_.messages[At(message.cause)].end_ns;
      }
      // Clocks agree only to a few microseconds. No message arrives before it is sent.
      if (sent_ns > 0) message.sent_ns = std::min(sent_ns, record.arrived_ns);
    }
  }

  /// Answers often hold less than the request did.
  void FillFromRequests() {
    for (std::size_t i = 0; i < records_.messages.size(); ++i) {
      const TraceRecord& record = records_.messages[i];
      TraceMessage& message = trace_.messages[i];
      if (record.answer == 0 || (message.unit >= 0 && message.round >= 0)) continue;
      const auto asked = requests_.find({record.receiver, record.sender, record.request});
      if (asked == requests_.end()) continue;
      const TraceMessage& request = trace_.messages[At(asked->second)];
      if (message.unit < 0) message.unit = request.unit;
      if (message.round < 0) message.round = request.round;
    }
  }

  /// Boundary messages hold only their unit; the work on it holds the round. One module may count
  /// windows, another microbatches.
  void FillFromWork() {
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> rounds;
    for (const TraceRecord& record : records_.work) {
      const auto kind = static_cast<WorkKind>(record.work);
      if (kind == WorkKind::kForward || kind == WorkKind::kBackward) {
        rounds.emplace(std::pair(ModuleOf(record.stage), record.unit), record.round);
      }
    }
    for (TraceMessage& message : trace_.messages) {
      if (message.round >= 0 || message.unit < 0) continue;
      const auto found = rounds.find({ModuleOf(StageOf(message)), message.unit});
      if (found != rounds.end()) message.round = found->second;
    }
  }

 private:
  /// Empty for a stage that is not in the trace.
  std::string ModuleOf(int stage) const {
    return stage < 0 || At(stage) >= trace_.stages.size() ? "" : trace_.stages[At(stage)].module;
  }

  /// A stage of the module whose units the message counts: that of its receiver or sender, else the
  /// one that the edge ends at. -1: unknown.
  int StageOf(const TraceMessage& message) const {
    for (const int actor : {message.receiver, message.sender}) {
      if (actor >= 0 && trace_.actors[At(actor)].id.stage >= 0) {
        return trace_.actors[At(actor)].id.stage;
      }
    }
    const bool at_edge = message.link >= 0 && At(message.link) < trace_.links.size();
    return at_edge ? trace_.links[At(message.link)].to : -1;
  }

  /// The message with this id; -1: unknown.
  int IndexOf(std::uint64_t id) const {
    const auto found = records_.by_id.find(id);
    return found == records_.by_id.end() ? -1 : found->second;
  }

  /// Indexes by actor the messages it handled, in time order, and the requests sent from them.
  void IndexHandlings() {
    for (std::size_t i = 0; i < records_.messages.size(); ++i) {
      const TraceRecord& record = records_.messages[i];
      if (record.begin_ns != 0) handlings_[record.receiver].push_back(static_cast<int>(i));
      if (record.request != 0 && record.answer == 0) {
        requests_[{record.sender, record.receiver, record.request}] = static_cast<int>(i);
      }
    }
    for (auto& [actor, list] : handlings_) {
      std::ranges::sort(list, {}, [&](int i) { return records_.messages[At(i)].begin_ns; });
      for (const int i : list) {
        const TraceRecord& record = records_.messages[At(i)];
        if (record.last_request != record.first_request) senders_[record.receiver].push_back(i);
      }
    }
  }

  /// The handled message from which `actor` sent its request `number`; -1: unknown.
  int SenderOfRequest(ActorNumber actor, std::uint64_t number) const {
    const auto found = senders_.find(actor);
    if (found == senders_.end()) return -1;
    const auto& list = found->second;
    // Numbers grow with time.
    const auto at = std::ranges::lower_bound(
        list, number, {}, [&](int i) { return records_.messages[At(i)].last_request; });
    if (at == list.end() || records_.messages[At(*at)].first_request >= number) return -1;
    return *at;
  }

  /// The last message whose handler `actor` had begun by then; -1: unknown.
  int HandlingAt(ActorNumber actor, std::int64_t at_ns) const {
    const auto found = handlings_.find(actor);
    if (found == handlings_.end()) return -1;
    const auto& list = found->second;
    const auto after = std::ranges::upper_bound(
        list, at_ns, {}, [&](int i) { return records_.messages[At(i)].begin_ns; });
    return after == list.begin() ? -1 : *(after - 1);
  }

  const MergedRecords& records_;
  RunTrace& trace_;
  std::map<RequestKey, int> requests_;
  std::unordered_map<ActorNumber, std::vector<int>> handlings_;
  std::unordered_map<ActorNumber, std::vector<int>> senders_;
};

}  // namespace

void ResolveCauses(const MergedRecords& records, RunTrace& trace) {
  Causes causes(records, trace);
  causes.ResolveCauses();
  causes.FillFromRequests();
  causes.FillFromWork();
}

}  // namespace troupe
