#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "layout/at.hpp"
#include "trace/analyze/table.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {
namespace {

/// Microseconds with three decimals, without passing through a double.
std::string Micros(std::int64_t ns) {
  const std::string rest = std::to_string(1000 + ns % 1000).substr(1);
  return std::to_string(ns / 1000) + "." + rest;
}

/// The position of a lane in the two levels of the format. Both count from 1.
struct Place {
  int pid = 0;
  int tid = 0;
};

class ChromeWriter {
 public:
  ChromeWriter(std::ostream& out, const TraceIndex& index, const Timeline& timeline)
      : out_(out), index_(index), timeline_(timeline) {}

  void Write() {
    out_ << "{\"traceEvents\":[";
    for (const TimelineLane& lane : timeline_.lanes) places_.push_back(PlaceOf(lane));
    WriteSteps();
    for (const Arrow& arrow : timeline_.arrows) WriteSend(arrow);
    for (const LaneSlice& slice : timeline_.slices) WriteSlice(slice);
    for (const LaneCounter& counter : timeline_.counters) WriteCounter(counter);
    out_ << "\n],\n\"displayTimeUnit\":\"ms\",\n\"metadata\":{\"run\":"
         << JsonString(index_.trace().run) << ",\"base_ns\":" << index_.trace().origin_ns
         << ",\"messages\":" << timeline_.messages() << ",\"arrows\":" << timeline_.arrows.size()
         << ",\"unhandled_messages\":" << timeline_.unhandled
         << ",\"nameless_receivers\":" << timeline_.nameless << "}}\n";
  }

 private:
  /// Writes one event from its fields without braces.
  void Put(const std::string& event) {
    out_ << (first_ ? "\n{" : ",\n{") << event << '}';
    first_ = false;
  }

  void Name(const char* what, Place place, const std::string& name, int order) {
    const std::string where =
        ",\"ph\":\"M\",\"pid\":" + std::to_string(place.pid) +
        (place.tid > 0 ? ",\"tid\":" + std::to_string(place.tid) : std::string());
    Put("\"name\":\"" + std::string(what) + "_name\"" + where +
        ",\"args\":{\"name\":" + JsonString(name) + "}");
    Put("\"name\":\"" + std::string(what) + "_sort_index\"" + where +
        ",\"args\":{\"sort_index\":" + std::to_string(order) + "}");
  }

  /// A process is the parent of a lane (a rank), or the lane itself if it has no parent. Each lane
  /// of handlers has a lane of sent messages next to it.
  Place PlaceOf(const TimelineLane& lane) {
    std::vector<std::string> group = lane.path;
    const bool on_rank = lane.kind == LaneKind::kWork || group.back() == "messages";
    const std::string name = group.back();
    if (on_rank || group.size() > 1) group.pop_back();
    std::string joined;
    for (const std::string& part : group) joined += (joined.empty() ? "" : " · ") + part;
    const auto [at, fresh] = pids_.try_emplace(joined, static_cast<int>(pids_.size()) + 1);
    if (fresh) Name("process", {at->second, 0}, joined, at->second);
    const Place place{at->second, 2 * ++lanes_in_[at->second] - 1};
    Name("thread", place, name, place.tid);
    if (lane.kind == LaneKind::kHandlers) {
      Name("thread", {place.pid, place.tid + 1}, name + ", sent", place.tid + 1);
    }
    return place;
  }

  static std::string Complete(const std::string& name, const char* category, Place place,
                              std::int64_t begin_ns, std::int64_t end_ns) {
    return "\"name\":" + JsonString(name) + ",\"cat\":\"" + category +
           "\",\"ph\":\"X\",\"pid\":" + std::to_string(place.pid) +
           ",\"tid\":" + std::to_string(place.tid) + ",\"ts\":" + Micros(begin_ns) +
           ",\"dur\":" + Micros(end_ns - begin_ns);
  }

  void WriteSteps() {
    if (timeline_.steps.empty()) return;
    const Place place{static_cast<int>(pids_.size()) + 1, 1};
    pids_["steps"] = place.pid;
    Name("process", {place.pid, 0}, "steps", 0);
    Name("thread", place, "steps", 1);
    std::int64_t until = 0;
    for (const StepSpan& span : timeline_.steps) {
      const std::int64_t begin_ns = std::max(span.begin_ns, until);
      until = std::max(span.end_ns, begin_ns + 1);
      Put(Complete("step " + std::to_string(span.step), "step", place, begin_ns, until));
    }
  }

  static std::string Bind(int message, const char* direction) {
    return ",\"bind_id\":\"0x" + Hex(static_cast<std::uint64_t>(message) + 1) + "\",\"" +
           direction + "\":true";
  }
  static std::string Hex(std::uint64_t value) {
    std::string text;
    for (; value > 0; value >>= 4) text.insert(text.begin(), "0123456789abcdef"[value & 15]);
    return text;
  }

  void WriteSend(const Arrow& arrow) {
    Place place = places_[At(arrow.from_lane)];
    ++place.tid;
    const TraceMessage& m = index_.message(arrow.message);
    Put(Complete("send " + index_.TypeName(arrow.message), "msg", place, arrow.sent_ns,
                 arrow.sent_ns + 1) +
        Bind(arrow.message, "flow_out") + ",\"args\":{\"to\":" +
        JsonString(index_.ActorName(m.receiver)) + ",\"bytes\":" + std::to_string(m.bytes) +
        ",\"sent_ns\":" + std::to_string(m.sent_ns) + "}");
  }

  void WriteSlice(const LaneSlice& slice) {
    const Place place = places_[At(slice.lane)];
    std::string event = Complete(SliceName(index_, slice), slice.work >= 0 ? "compute" : "handler",
                                 place, slice.begin_ns, slice.end_ns);
    if (slice.work >= 0) {
      const PassRecord& pass = index_.work(slice.work).pass;
      const CoreTime& cores = index_.work(slice.work).cores;
      event += ",\"args\":{\"stage\":" + JsonString(index_.StageName(pass.stage)) +
               ",\"dp\":" + std::to_string(pass.dp) +
               ",\"microbatch\":" + JsonString(ToString(index_.places().Of(pass))) +
               ",\"on_core_ns\":" + std::to_string(cores.on_core_ns) +
               ",\"without_core_ns\":" + std::to_string(cores.without_core_ns) + "}";
    } else {
      const TraceMessage& m = index_.message(slice.message);
      event += Bind(slice.message, "flow_in") +
               ",\"args\":{\"from\":" + JsonString(index_.ActorName(m.sender)) +
               ",\"id\":" + std::to_string(m.id) + ",\"microbatch\":" +
               JsonString(ToString(index_.places().OfMessage(index_, slice.message))) +
               ",\"arrived_ns\":" + std::to_string(m.arrived_ns) +
               ",\"begin_ns\":" + std::to_string(m.begin_ns) +
               ",\"end_ns\":" + std::to_string(m.end_ns) + "}";
    }
    Put(event);
  }

  void WriteCounter(const LaneCounter& counter) {
    std::string group;
    for (std::size_t i = 0; i + 1 < counter.path.size(); ++i) {
      group += (i == 0 ? "" : " · ") + counter.path[i];
    }
    const auto [at, fresh] = pids_.try_emplace(group, static_cast<int>(pids_.size()) + 1);
    if (fresh) Name("process", {at->second, 0}, group, at->second);
    for (const CounterPoint& point : counter.points) {
      Put("\"name\":" + JsonString(counter.path.back()) +
          ",\"ph\":\"C\",\"pid\":" + std::to_string(at->second) + ",\"ts\":" + Micros(point.at_ns) +
          ",\"args\":{" + JsonString(counter.unit) + ":" + std::to_string(point.value) + "}");
    }
  }

  std::ostream& out_;
  const TraceIndex& index_;
  const Timeline& timeline_;
  bool first_ = true;
  std::map<std::string, int> pids_;
  std::map<int, int> lanes_in_;  ///< by pid
  std::vector<Place> places_;    ///< by lane
};

}  // namespace

void WriteChrome(std::ostream& out, const TraceIndex& index, const Timeline& timeline) {
  ChromeWriter(out, index, timeline).Write();
}

}  // namespace troupe
