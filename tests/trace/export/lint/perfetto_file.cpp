#include "tests/trace/export/lint/perfetto_file.hpp"

#include "tests/trace/export/lint/proto_reader.hpp"
#include "trace/export/track_event.hpp"

namespace troupe {
namespace {

using namespace track_event;

struct Note {
  std::string name;
  std::string text;
  std::uint64_t number = 0;
};

Note NoteOf(std::string_view bytes) {
  Note note;
  ProtoReader fields(bytes);
  for (ProtoField field; fields.Next(field);) {
    if (field.number == annotation::kName) note.name = field.bytes;
    if (field.number == annotation::kText) note.text = field.bytes;
    if (field.number == annotation::kInt) note.number = field.value;
  }
  return note;
}

class Reader {
 public:
  PerfettoFile Read(std::string_view content) {
    ProtoReader trace(content);
    for (ProtoField field; trace.Next(field);) OnPacket(field.bytes);
    for (const auto& [flow, arrow] : arrows_) {
      if (arrow.sent_ns >= 0 && arrow.begin_ns >= 0) file_.arrows.push_back(arrow);
    }
    return std::move(file_);
  }

 private:
  void OnPacket(std::string_view bytes) {
    ProtoReader packet(bytes);
    std::int64_t at_ns = 0;
    for (ProtoField field; packet.Next(field);) {
      if (field.number == packet::kTimestamp) at_ns = static_cast<std::int64_t>(field.value);
      if (field.number == packet::kDescriptor) OnTrack(field.bytes);
      if (field.number == packet::kEvent) OnEvent(field.bytes, at_ns);
    }
  }

  /// Parents are described before their children.
  void OnTrack(std::string_view bytes) {
    ProtoReader fields(bytes);
    std::uint64_t uuid = 0;
    std::string name;
    std::string parent;
    for (ProtoField field; fields.Next(field);) {
      if (field.number == descriptor::kUuid) uuid = field.value;
      if (field.number == descriptor::kName) name = field.bytes;
      if (field.number == descriptor::kParent) parent = paths_[field.value];
    }
    paths_[uuid] = parent + "/" + name;
  }

  void OnEvent(std::string_view bytes, std::int64_t at_ns) {
    ProtoReader fields(bytes);
    std::map<std::string, Note> notes;
    std::uint64_t track = 0;
    std::uint64_t starts = 0;
    std::uint64_t ends = 0;
    for (ProtoField field; fields.Next(field);) {
      if (field.number == event::kTrack) track = field.value;
      if (field.number == event::kFlow) starts = field.value;
      if (field.number == event::kTerminatingFlow) ends = field.value;
      if (field.number == event::kCounterValue) {
        file_.counters[paths_[track]].emplace_back(at_ns, static_cast<std::int64_t>(field.value));
      }
      if (field.number == event::kAnnotation) {
        const Note note = NoteOf(field.bytes);
        notes[note.name] = note;
      }
    }
    if (starts != 0) {
      ++file_.starts;
      ArrowOf(starts).sent_ns = at_ns;
      ArrowOf(starts).to = notes["to"].text;
    }
    if (ends != 0) {
      ++file_.ends;
      DrawnArrow& arrow = ArrowOf(ends);
      arrow.begin_ns = at_ns;
      arrow.id = notes["id"].number;
      arrow.from = notes["from"].text;
      arrow.recorded_begin_ns = static_cast<std::int64_t>(notes["begin_ns"].number);
    }
  }

  DrawnArrow& ArrowOf(std::uint64_t flow) {
    return arrows_.try_emplace(flow, DrawnArrow{0, "", "", -1, -1, -1}).first->second;
  }

  PerfettoFile file_;
  std::map<std::uint64_t, std::string> paths_;  // by track
  std::map<std::uint64_t, DrawnArrow> arrows_;  // by flow
};

}  // namespace

PerfettoFile ReadPerfetto(std::string_view content) { return Reader().Read(content); }

}  // namespace troupe
