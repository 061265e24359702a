#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "tests/trace/export/lint/lint.hpp"
#include "tests/trace/export/lint/proto_reader.hpp"
#include "trace/analyze/table.hpp"
#include "trace/export/track_event.hpp"

namespace troupe {
namespace {

using namespace track_event;

struct ProtoTrack {
  std::uint64_t parent = 0;
  bool counter = false;
  bool process_or_thread = false;
  std::string name;
  std::vector<std::int64_t> open;  ///< begins of slices that have not ended
};

struct ProtoEvent {
  std::uint64_t type = 0;
  std::uint64_t track = 0;
  bool has_track = false;
  bool has_name = false;
  bool has_value = false;
  std::vector<std::uint64_t> flows;
  std::vector<std::uint64_t> ends;
};

struct ProtoFlow {
  std::int64_t starts = std::numeric_limits<std::int64_t>::max();
  std::int64_t ends = std::numeric_limits<std::int64_t>::max();  ///< the first end
  std::int64_t num_starts = 0;
  std::int64_t num_ends = 0;
  std::int64_t packet = 0;
};

class ProtoLinter {
 public:
  LintReport Lint(std::string_view content) {
    ProtoReader trace(content);
    for (ProtoField field; trace.Next(field);) {
      if (field.number != kPacket || field.wire != 2) {
        Complain("field", "field " + std::to_string(field.number) +
                              " of the trace is no packet; expected field 1, bytes");
        continue;
      }
      ++packet_;
      OnPacket(field.bytes);
    }
    if (trace.broken()) {
      report_.Add("truncated", "byte " + std::to_string(trace.at()),
                  "the file ends, or is no protobuf, inside packet " + std::to_string(packet_ + 1));
    }
    if (events_.empty() && tracks_.empty() && !of_trace_) {
      report_.no_timeline = "it has no packets of a trace";
      report_.findings.clear();
      report_.found = {{"no-timeline", 1}};
      return std::move(report_);
    }
    // Importers sort by time before they look at events.
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Timed& a, const Timed& b) { return a.at_ns < b.at_ns; });
    for (const Timed& event : events_) {
      packet_ = event.packet;
      OnEvent(event.bytes, event.at_ns);
    }
    CheckTracks();
    CheckFlows();
    return std::move(report_);
  }

 private:
  struct Timed {
    std::int64_t at_ns = 0;
    std::int64_t packet = 0;
    std::string_view bytes;
  };

  void Complain(const char* rule, const std::string& text) {
    report_.Add(rule, "packet " + std::to_string(packet_), text);
  }
  void CheckText(std::string_view text) {
    if (CleanText(text) != text) {
      Complain("text", "a name has control characters or is not UTF-8");
    }
  }

  void OnPacket(std::string_view bytes) {
    ProtoReader packet(bytes);
    bool timed = false;
    bool sequenced = false;
    std::int64_t at_ns = 0;
    std::string_view event;
    bool has_event = false;
    bool known = false;
    for (ProtoField field; packet.Next(field);) {
      known = known || field.number >= packet::kTimestamp;
      if (field.number == packet::kTimestamp && field.wire == 0) {
        timed = true;
        at_ns = static_cast<std::int64_t>(field.value);
      }
      if (field.number == packet::kSequence && field.wire == 0) sequenced = field.value != 0;
      if (field.number == packet::kDescriptor && field.wire == 2) OnTrack(field.bytes);
      if (field.number == packet::kEvent && field.wire == 2) {
        event = field.bytes;
        has_event = true;
      }
    }
    if (packet.broken()) Complain("malformed", "it cannot be read as fields");
    of_trace_ = of_trace_ || (known && !packet.broken());
    if (!has_event) return;
    if (!sequenced) Complain("sequence", "an event without trusted_packet_sequence_id is dropped");
    if (!timed) Complain("timestamp", "an event without a timestamp");
    if (at_ns < 0) {
      Complain("timestamp", "importers take it for the negative " + std::to_string(at_ns) +
                                " ns and drop the event");
    }
    events_.push_back({at_ns, packet_, event});
  }

  void OnTrack(std::string_view bytes) {
    ProtoReader fields(bytes);
    ProtoTrack track;
    std::uint64_t uuid = 0;
    for (ProtoField field; fields.Next(field);) {
      if (field.number == descriptor::kUuid) uuid = field.value;
      if (field.number == descriptor::kName) track.name = field.bytes;
      if (field.number == descriptor::kParent) track.parent = field.value;
      if (field.number == descriptor::kCounter) track.counter = true;
      if (field.number == descriptor::kProcess || field.number == descriptor::kThread) {
        track.process_or_thread = true;
      }
    }
    if (fields.broken()) Complain("malformed", "a track that cannot be read as fields");
    if (uuid == 0) Complain("track-id", "a track without a uuid, or with 0");
    CheckText(track.name);
    const auto [at, fresh] = tracks_.try_emplace(uuid, track);
    if (!fresh && (at->second.parent != track.parent || at->second.name != track.name)) {
      Complain("track-id", "uuid " + std::to_string(uuid) + " is \"" + at->second.name +
                               "\" and \"" + track.name + "\"");
    }
    if (fresh) ++report_.tracks;
  }

  ProtoEvent Read(std::string_view bytes) {
    ProtoReader fields(bytes);
    ProtoEvent event;
    for (ProtoField field; fields.Next(field);) {
      if (field.number == event::kType) event.type = field.value;
      if (field.number == event::kTrack) {
        event.track = field.value;
        event.has_track = true;
      }
      if (field.number == event::kName) {
        event.has_name = true;
        CheckText(field.bytes);
      }
      if (field.number == 10) event.has_name = true;  // name_iid
      if (field.number == event::kCounterValue || field.number == 44) event.has_value = true;
      if (field.number == event::kFlow) event.flows.push_back(field.value);
      if (field.number == event::kTerminatingFlow) event.ends.push_back(field.value);
    }
    if (fields.broken()) Complain("malformed", "an event that cannot be read as fields");
    return event;
  }

  void OnEvent(std::string_view bytes, std::int64_t at_ns) {
    const ProtoEvent event = Read(bytes);
    ++report_.events;
    const auto found = tracks_.find(event.track);
    if (!event.has_track || found == tracks_.end()) {
      Complain("unknown-track",
               "its track " + std::to_string(event.track) + " is described nowhere");
      return;
    }
    OnTyped(event, found->second, at_ns);
    for (const std::uint64_t id : event.flows) {
      ProtoFlow& flow = flows_[id];
      flow.starts = std::min(flow.starts, at_ns);
      ++flow.num_starts;
      flow.packet = packet_;
    }
    for (const std::uint64_t id : event.ends) {
      ProtoFlow& flow = flows_[id];
      flow.ends = std::min(flow.ends, at_ns);
      ++flow.num_ends;
      flow.packet = packet_;
    }
  }

  void OnTyped(const ProtoEvent& event, ProtoTrack& track, std::int64_t at_ns) {
    const std::string name = "\"" + track.name + "\"";
    if (event.type == event::kCounter) {
      ++report_.counters;
      if (!track.counter) Complain("counter", name + " is no track of a counter");
      if (!event.has_value) Complain("counter", "a counter event without a value");
      return;
    }
    if (track.counter) Complain("counter", name + " counts; slices do not belong there");
    if (event.type == event::kBegin) {
      if (!event.has_name) Complain("name", "a slice without a name");
      track.open.push_back(at_ns);
      ++report_.slices;
    } else if (event.type == event::kEnd) {
      if (track.open.empty()) {
        Complain("nesting", "an end on " + name + " where nothing has begun");
        return;
      }
      track.open.pop_back();
    } else if (event.type != event::kInstant) {
      Complain("type", "type " + std::to_string(event.type) +
                           " is none of begin, end, instant, "
                           "counter");
    }
  }

  void CheckTracks() {
    for (const auto& [uuid, track] : tracks_) {
      const std::string where = "track " + std::to_string(uuid);
      if (!track.open.empty()) {
        report_.Add(
            "nesting", where,
            std::to_string(track.open.size()) + " slices on \"" + track.name + "\" never end");
      }
      if (track.parent == 0) continue;
      const auto parent = tracks_.find(track.parent);
      if (parent == tracks_.end()) {
        report_.Add("parent", where,
                    "its parent " + std::to_string(track.parent) + " is not described");
      } else if (parent->second.process_or_thread && !track.counter) {
        report_.Add("parent", where,
                    "\"" + track.name +
                        "\" is below a process or thread, and "
                        "would be drawn beside it");
      }
      std::set<std::uint64_t> seen;
      std::uint64_t at = uuid;
      while (at != 0 && seen.size() < 64 && seen.insert(at).second) {
        const auto next = tracks_.find(at);
        at = next == tracks_.end() ? 0 : next->second.parent;
      }
      if (at != 0) report_.Add("parent", where, "its parents lead in a circle, or too deep");
    }
  }

  void CheckFlows() {
    for (const auto& [id, flow] : flows_) {
      const std::string name = "flow " + std::to_string(id);
      const std::string where = "packet " + std::to_string(flow.packet);
      if (flow.num_starts == 0) {
        report_.Add("flow-start", where, name + " ends and never starts");
      } else if (flow.num_ends == 0 && flow.num_starts < 2) {
        report_.Add("flow-end", where, name + " starts and never ends");
      } else if (flow.num_ends > 0 && flow.ends < flow.starts) {
        report_.Add(
            "flow-order", where,
            name + " ends " + std::to_string(flow.starts - flow.ends) + " ns before it starts");
      } else {
        ++report_.flows;
      }
    }
  }

  LintReport report_;
  std::int64_t packet_ = 0;
  bool of_trace_ = false;  ///< some packet is one of a trace, of whatever kind
  std::vector<Timed> events_;
  std::map<std::uint64_t, ProtoTrack> tracks_;
  std::unordered_map<std::uint64_t, ProtoFlow> flows_;
};

}  // namespace

LintReport Lint(std::string_view content) { return ProtoLinter().Lint(content); }

}  // namespace troupe
