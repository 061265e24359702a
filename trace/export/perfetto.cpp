#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "files/proto.hpp"
#include "layout/at.hpp"
#include "trace/analyze/table.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/track_event.hpp"

namespace troupe {
namespace {

using namespace track_event;

std::uint64_t Unsigned(std::int64_t value) { return static_cast<std::uint64_t>(value); }

class PerfettoWriter {
 public:
  PerfettoWriter(std::ostream& out, const TraceIndex& index, const Timeline& timeline)
      : out_(out), index_(index), timeline_(timeline) {}

  void Write() {
    for (const TimelineLane& lane : timeline_.lanes)
      lane_tracks_.push_back(Track(lane.path, nullptr));
    for (const LaneCounter& counter : timeline_.counters) {
      counter_tracks_.push_back(Track(counter.path, &counter));
    }
    WriteSteps();
    for (const LaneSlice& slice : timeline_.slices) WriteSlice(slice);
    for (const Arrow& arrow : timeline_.arrows) WriteSend(arrow);
    for (std::size_t c = 0; c < timeline_.counters.size(); ++c) WriteCounter(c);
  }

 private:
  void Put(const ProtoWriter& packet) {
    ProtoWriter trace;
    trace.Message(kPacket, packet);
    out_ << trace.bytes();
  }

  /// The track at the end of `path`; creates its parents as needed. Siblings are ordered by
  /// creation, which follows the order of the paths.
  std::uint64_t Track(const std::vector<std::string>& path, const LaneCounter* counter) {
    std::uint64_t parent = 0;
    std::vector<std::string> prefix;
    for (const std::string& name : path) {
      prefix.push_back(name);
      const bool last = prefix.size() == path.size();
      const auto [at, fresh] = tracks_.try_emplace(prefix, tracks_.size() + 1);
      if (fresh) Describe(at->second, name, parent, last ? counter : nullptr);
      parent = at->second;
    }
    return parent;
  }

  void Describe(std::uint64_t uuid, const std::string& name, std::uint64_t parent,
                const LaneCounter* counter) {
    ProtoWriter track;
    track.Varint(descriptor::kUuid, uuid);
    PutText(track, descriptor::kName, name);
    if (parent != 0) track.Varint(descriptor::kParent, parent);
    if (counter != nullptr) {
      ProtoWriter unit;
      const bool bytes = counter->unit == "bytes";
      unit.Varint(descriptor::kUnit, bytes ? descriptor::kBytes : descriptor::kCount);
      if (!bytes) unit.Text(descriptor::kUnitName, counter->unit);
      if (!counter->axis.empty()) unit.Text(descriptor::kAxis, counter->axis);
      track.Message(descriptor::kCounter, unit);
    }
    track.Varint(descriptor::kChildOrdering, descriptor::kExplicit);
    track.Varint(descriptor::kSiblingRank, ++siblings_[parent]);
    track.Varint(descriptor::kSiblingMerge, descriptor::kNoMerge);
    ProtoWriter packet;
    packet.Varint(packet::kSequence, 1);
    packet.Message(packet::kDescriptor, track);
    Put(packet);
  }

  /// Cleans names, since they come from possibly damaged files; importers refuse invalid text.
  static void PutText(ProtoWriter& message, int field, std::string_view text) {
    message.Text(field, CleanText(text));
  }

  void PutEvent(std::int64_t at_ns, const ProtoWriter& event) {
    ProtoWriter packet;
    packet.Varint(packet::kTimestamp, Unsigned(at_ns));
    packet.Varint(packet::kSequence, 1);
    packet.Message(packet::kEvent, event);
    Put(packet);
  }

  static ProtoWriter Event(int type, std::uint64_t track) {
    ProtoWriter event;
    event.Varint(event::kType, static_cast<std::uint64_t>(type));
    event.Varint(event::kTrack, track);
    return event;
  }

  static void Annotate(ProtoWriter& event, const char* name, std::int64_t value) {
    ProtoWriter note;
    note.Text(annotation::kName, name);
    note.Varint(annotation::kInt, Unsigned(value));
    event.Message(event::kAnnotation, note);
  }
  static void Annotate(ProtoWriter& event, const char* name, const std::string& value) {
    ProtoWriter note;
    note.Text(annotation::kName, name);
    PutText(note, annotation::kText, value);
    event.Message(event::kAnnotation, note);
  }

  void PutEnd(std::int64_t at_ns, std::uint64_t track) {
    PutEvent(at_ns, Event(event::kEnd, track));
  }

  void WriteSteps() {
    if (timeline_.steps.empty()) return;
    const std::uint64_t track = Track({"steps"}, nullptr);
    std::int64_t until = 0;
    for (const StepSpan& span : timeline_.steps) {
      ProtoWriter event = Event(event::kBegin, track);
      event.Text(event::kName, "step " + std::to_string(span.step));
      const std::int64_t begin_ns = std::max(span.begin_ns, until);
      until = std::max(span.end_ns, begin_ns + 1);
      PutEvent(begin_ns, event);
      PutEnd(until, track);
    }
  }

  void WriteSlice(const LaneSlice& slice) {
    const std::uint64_t track = lane_tracks_[At(slice.lane)];
    ProtoWriter event = Event(event::kBegin, track);
    PutText(event, event::kName, SliceName(index_, slice));
    event.Text(event::kCategory, slice.work >= 0 ? "work" : "handler");
    if (slice.work >= 0) {
      const TraceWork& one = index_.work(slice.work);
      const PassRecord& pass = one.pass;
      Annotate(event, "stage", index_.StageName(pass.stage));
      Annotate(event, "dp", pass.dp);
      Annotate(event, "microbatch", ToString(index_.places().Of(pass)));
      if (one.cores.known()) Annotate(event, "on_core_ns", one.cores.on_core_ns);
      if (one.cores.without_core_ns >= 0) {
        Annotate(event, "without_core_ns", one.cores.without_core_ns);
      }
    } else {
      AnnotateMessage(event, slice.message);
      event.Fixed64(event::kTerminatingFlow, FlowOf(slice.message));
    }
    PutEvent(slice.begin_ns, event);
    PutEnd(slice.end_ns, track);
  }

  /// Flow ids must not be 0.
  static std::uint64_t FlowOf(int message) { return static_cast<std::uint64_t>(message) + 1; }

  void AnnotateMessage(ProtoWriter& event, int i) {
    const TraceMessage& m = index_.message(i);
    Annotate(event, "from", index_.ActorName(m.sender));
    Annotate(event, "id", static_cast<std::int64_t>(m.id));
    if (m.unit >= 0) Annotate(event, "microbatch", ToString(index_.places().OfMessage(index_, i)));
    if (m.bytes > 0) Annotate(event, "bytes", m.bytes);
    // The recorded times. Drawn times may be shifted so that no arrow goes back in time.
    Annotate(event, "sent_ns", m.sent_ns);
    Annotate(event, "arrived_ns", m.arrived_ns);
    Annotate(event, "begin_ns", m.begin_ns);
    Annotate(event, "end_ns", m.end_ns);
  }

  void WriteSend(const Arrow& arrow) {
    ProtoWriter event = Event(event::kInstant, lane_tracks_[At(arrow.from_lane)]);
    PutText(event, event::kName, "send " + index_.TypeName(arrow.message));
    event.Text(event::kCategory, "send");
    Annotate(event, "to", index_.ActorName(index_.message(arrow.message).receiver));
    event.Fixed64(event::kFlow, FlowOf(arrow.message));
    PutEvent(arrow.sent_ns, event);
  }

  void WriteCounter(std::size_t c) {
    for (const CounterPoint& point : timeline_.counters[c].points) {
      ProtoWriter event = Event(event::kCounter, counter_tracks_[c]);
      event.Varint(event::kCounterValue, Unsigned(point.value));
      PutEvent(point.at_ns, event);
    }
  }

  std::ostream& out_;
  const TraceIndex& index_;
  const Timeline& timeline_;
  std::map<std::vector<std::string>, std::uint64_t> tracks_;
  std::map<std::uint64_t, std::uint64_t> siblings_;
  std::vector<std::uint64_t> lane_tracks_;
  std::vector<std::uint64_t> counter_tracks_;
};

}  // namespace

void WritePerfetto(std::ostream& out, const TraceIndex& index, const Timeline& timeline) {
  PerfettoWriter(out, index, timeline).Write();
}

}  // namespace troupe
