// The data of the page, one JSON object; times in ns since the beginning of the stretch:
//   run, length, missing, unhandled
//   kinds   names of what slices are; "message" last
//   lanes   {path, kind: "work" or "messages"}
//   names   what slices are called
//   slices  [lane, begin, length, name, kind, message]    message: index of its arrow, or -1
//   arrows  [from lane, sent, slice, cause]               cause: index of an arrow, or -1
//   steps   [step, begin, end]
//   counters {path, unit, points: [at, value]}             the value until the next point
//   bubble  rows of the summary; losses [step, loss]
#include <map>
#include <ostream>
#include <string>

#include "trace/analyze/summary.hpp"
#include "trace/analyze/table.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/page_text.hpp"

namespace troupe {
namespace {

/// A script element must not end inside its data.
std::string WithoutTags(const std::string& json) {
  std::string safe;
  for (const char c : json) safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return safe;
}

std::string Numbers(std::initializer_list<std::int64_t> numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) {
    text += (text.size() > 1 ? "," : "") + std::to_string(number);
  }
  return text + "]";
}

class Data {
 public:
  Data(const TraceIndex& index, const Timeline& timeline) : index_(index), timeline_(timeline) {}

  std::string Write(const PageExtras& extras) {
    const std::string slices = Slices();  // names and kinds are known only then
    std::string missing = WhatIsMissing(index_.trace());
    if (!missing.empty()) missing.pop_back();
    return "{\"run\":" + JsonString(index_.trace().run) +
           ",\"length\":" + std::to_string(timeline_.end_ns - timeline_.begin_ns) +
           ",\"missing\":" + JsonString(missing) +
           ",\"unhandled\":" + std::to_string(timeline_.unhandled + timeline_.nameless) +
           ",\n\"kinds\":" + List(kinds_) + ",\n\"lanes\":" + Lanes() +
           ",\n\"names\":" + List(names_) + ",\n\"slices\":" + slices +
           ",\n\"arrows\":" + Arrows() + ",\n\"steps\":" + Steps() +
           ",\n\"counters\":" + Counters() + ",\n\"bubble\":" + extras.bubble_json +
           ",\n\"losses\":" + extras.losses_json + "}";
  }

 private:
  using Numbering = std::map<std::string, std::int64_t>;

  std::int64_t Since(std::int64_t ns) const { return ns - timeline_.begin_ns; }

  static std::int64_t NumberOf(Numbering& numbering, const std::string& text) {
    return numbering.try_emplace(text, static_cast<std::int64_t>(numbering.size())).first->second;
  }
  static std::string List(const Numbering& numbering) {
    std::vector<std::string> texts(numbering.size());
    for (const auto& [text, number] : numbering) texts[static_cast<std::size_t>(number)] = text;
    std::string list = "[";
    for (const std::string& text : texts) list += (list.size() > 1 ? "," : "") + JsonString(text);
    return list + "]";
  }

  static std::string Path(const std::vector<std::string>& path) {
    std::string list = "[";
    for (const std::string& part : path) list += (list.size() > 1 ? "," : "") + JsonString(part);
    return list + "]";
  }

  std::string Lanes() const {
    std::string list = "[";
    for (const Lane& lane : timeline_.lanes) {
      list += (list.size() > 1 ? ",\n{\"path\":" : "{\"path\":") + Path(lane.path) +
              ",\"kind\":\"" + (lane.kind == LaneKind::kWork ? "work" : "messages") + "\"}";
    }
    return list + "]";
  }

  std::string Slices() {
    arrow_of_.clear();
    for (std::size_t a = 0; a < timeline_.arrows.size(); ++a) {
      arrow_of_[timeline_.arrows[a].message] = static_cast<std::int64_t>(a);
    }
    for (const char* kind : {"F", "B", "reduce", "update", "exchange", "offload", "restore"})
      NumberOf(kinds_, kind);
    std::string list = "[";
    for (const LaneSlice& slice : timeline_.slices) {
      const std::string kind =
          slice.work < 0 ? "message" : ToString(index_.work(slice.work).pass.kind);
      list += (list.size() > 1 ? "," : "") +
              Numbers({slice.lane, Since(slice.begin_ns), slice.end_ns - slice.begin_ns,
                       NumberOf(names_, SliceName(index_, slice)), NumberOf(kinds_, kind),
                       ArrowOf(slice.message)});
    }
    return list + "]";
  }

  std::int64_t ArrowOf(int message) const {
    const auto found = arrow_of_.find(message);
    return found == arrow_of_.end() ? -1 : found->second;
  }

  std::string Arrows() const {
    std::string list = "[";
    for (const Arrow& arrow : timeline_.arrows) {
      list += (list.size() > 1 ? "," : "") +
              Numbers({arrow.from_lane, Since(arrow.sent_ns), arrow.slice,
                       ArrowOf(index_.message(arrow.message).cause)});
    }
    return list + "]";
  }

  std::string Steps() const {
    std::string list = "[";
    for (const StepSpan& span : timeline_.steps) {
      list += (list.size() > 1 ? "," : "") +
              Numbers({span.step, Since(span.begin_ns), Since(span.end_ns)});
    }
    return list + "]";
  }

  std::string Counters() const {
    std::string list = "[";
    for (const LaneCounter& counter : timeline_.counters) {
      std::string points = "[";
      for (const CounterPoint& point : counter.points) {
        points += (points.size() > 1 ? "," : "") + Numbers({Since(point.at_ns), point.value});
      }
      list += (list.size() > 1 ? ",\n{\"path\":" : "{\"path\":") + Path(counter.path) +
              ",\"unit\":" + JsonString(counter.unit) + ",\"points\":" + points + "]}";
    }
    return list + "]";
  }

  const TraceIndex& index_;
  const Timeline& timeline_;
  Numbering names_;
  Numbering kinds_;
  std::map<int, std::int64_t> arrow_of_;
};

}  // namespace

void WritePage(std::ostream& out, const TraceIndex& index, const Timeline& timeline,
               const PageExtras& extras) {
  out << kPageBeforeData << WithoutTags(Data(index, timeline).Write(extras)) << kPageAfterData
      << kPageTables;
}

}  // namespace troupe
