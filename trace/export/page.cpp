// The data of the page: {report, runs}, and of each run
//   name, facts, series   series: {key: [[step, value], ...]}
//   timeline              null, or below; times in ns since the beginning of the stretch
//   without_timeline      the reason if it is null
// A timeline:
//   run, length, missing, unhandled
//   kinds    names of slice kinds: "F", "message", ...
//   modules  {name, short}; short is a unique abbreviation
//   stages   [name, module]
//   lanes    {path, kind: "work" or "messages", label, rank}
//   names    names of slices
//   slices   [lane, begin, length, name, kind, message, stage, without a core, step]
//            message: index of its arrow; stage, step: of work; -1: none
//   arrows   [from lane, sent, slice, cause]               cause: index of an arrow, or -1
//   steps    [step, begin, end]
//   counters {path, unit, points: [at, value]}             the value until the next point
//   bubble   rows of the summary
#include <algorithm>
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

std::string FactsJson(const std::map<std::string, std::string>& facts) {
  std::string text = "{";
  for (const auto& [name, value] : facts) {
    text += (text.size() > 1 ? "," : "") + JsonString(name) + ":" + JsonString(value);
  }
  return text + "}";
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

  std::string Write(const std::string& bubble_json) {
    CollectModules();
    const std::string slices = Slices();  // fills names and kinds
    std::string missing = DescribeGaps(index_.trace());
    if (!missing.empty()) missing.pop_back();
    return "{\"run\":" + JsonString(index_.trace().run) +
           ",\"length\":" + std::to_string(timeline_.end_ns - timeline_.begin_ns) +
           ",\"missing\":" + JsonString(missing) +
           ",\"unhandled\":" + std::to_string(timeline_.unhandled + timeline_.nameless) +
           ",\n\"kinds\":" + List(kinds_) + ",\n\"modules\":" + Modules() +
           ",\n\"stages\":" + Stages() + ",\n\"lanes\":" + Lanes() +
           ",\n\"names\":" + List(names_) + ",\n\"slices\":" + slices +
           ",\n\"arrows\":" + Arrows() + ",\n\"steps\":" + Steps() +
           ",\n\"counters\":" + Counters() + ",\n\"bubble\":" + bubble_json + "}";
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
    for (const TimelineLane& lane : timeline_.lanes) {
      list += (list.size() > 1 ? ",\n{\"path\":" : "{\"path\":") + Path(lane.path) +
              ",\"kind\":\"" + (lane.kind == LaneKind::kWork ? "work" : "messages") +
              "\",\"rank\":" + std::to_string(lane.rank) +
              ",\"label\":" + JsonString(LabelOf(lane)) + "}";
    }
    return list + "]";
  }

  /// "rank 0: vision.s0, language.s0"; empty for lanes that are named by their path.
  std::string LabelOf(const TimelineLane& lane) const {
    if (lane.kind != LaneKind::kWork) return "";
    std::string label = "rank " + std::to_string(lane.rank) + ": ";
    for (std::size_t i = 0; i < lane.stages.size(); ++i) {
      label += (i == 0 ? "" : ", ") + index_.StageName(lane.stages[i]);
    }
    return lane.path.back() == kWorkLanes.front() ? label : label + " " + lane.path.back();
  }

  void CollectModules() {
    for (const StageId& stage : index_.trace().stages) {
      if (std::ranges::find(modules_, stage.module) == modules_.end()) {
        modules_.push_back(stage.module);
      }
    }
  }

  /// The shortest unique prefix of `module`.
  std::string ShortOf(const std::string& module) const {
    for (std::size_t length = 1; length < module.size(); ++length) {
      const std::string begin = module.substr(0, length);
      const auto has = [&](const std::string& other) { return other.rfind(begin, 0) == 0; };
      if (std::ranges::count_if(modules_, has) == 1) return begin;
    }
    return module;
  }

  std::string Modules() const {
    std::string list = "[";
    for (const std::string& module : modules_) {
      // Two or three letters need no abbreviation.
      list += (list.size() > 1 ? "," : "") + std::string("{\"name\":") + JsonString(module) +
              ",\"short\":" + JsonString(module.size() <= 3 ? module : ShortOf(module)) + "}";
    }
    return list + "]";
  }

  std::string Stages() const {
    std::string list = "[";
    for (const StageId& stage : index_.trace().stages) {
      const auto module = std::ranges::find(modules_, stage.module) - modules_.begin();
      list += (list.size() > 1 ? "," : "") + std::string("[") + JsonString(ToString(stage)) + "," +
              std::to_string(module) + "]";
    }
    return list + "]";
  }

  std::string Slices() {
    arrow_of_.clear();
    for (std::size_t a = 0; a < timeline_.arrows.size(); ++a) {
      arrow_of_[timeline_.arrows[a].message] = static_cast<std::int64_t>(a);
    }
    for (const char* kind :
         {"F", "B", "reduce", "update", "exchange", "offload", "restore", "checkpoint"})
      NumberOf(kinds_, kind);
    std::string list = "[";
    for (const LaneSlice& slice : timeline_.slices) {
      const TraceWork* const work = slice.work < 0 ? nullptr : &index_.work(slice.work);
      const bool pass = work != nullptr && IsPass(work->pass.kind);
      list += (list.size() > 1 ? "," : "") +
              Numbers({slice.lane, Since(slice.begin_ns), slice.end_ns - slice.begin_ns,
                       NumberOf(names_, SliceName(index_, slice)),
                       NumberOf(kinds_, work == nullptr ? "message" : ToString(work->pass.kind)),
                       ArrowOf(slice.message), work == nullptr ? -1 : work->pass.stage,
                       work == nullptr ? -1 : work->cores.without_core_ns,
                       pass ? index_.places().Of(work->pass).step : -1});
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
  std::vector<std::string> modules_;
  Numbering names_;
  Numbering kinds_;
  std::map<int, std::int64_t> arrow_of_;
};

}  // namespace

std::string PageTimelineJson(const PageTimeline& timeline) {
  return Data(timeline.index, timeline.timeline).Write(timeline.bubble_json);
}

void WritePage(std::ostream& out, PageKind kind, const std::vector<PageRun>& runs) {
  std::string json =
      std::string("{\"report\":") + (kind == PageKind::kReport ? "true" : "false") + ",\"runs\":[";
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const PageRun& run = runs[r];
    json += (r == 0 ? "{\"name\":" : ",\n{\"name\":") + JsonString(run.name) +
            ",\"facts\":" + FactsJson(run.facts) + ",\"series\":" + run.series_json +
            ",\"without_timeline\":" + JsonString(run.without_timeline) +
            ",\n\"timeline\":" + (run.timeline_json.empty() ? "null" : run.timeline_json) + "}";
  }
  out << kPageBeforeData << WithoutTags(json + "]}") << kPageTimeline << kPageTables << kPageCharts;
}

}  // namespace troupe
