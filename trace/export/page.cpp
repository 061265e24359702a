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

/// "[a,b]" of parts that `text_of` writes as JSON.
template <class Parts, class TextOf>
std::string Array(const Parts& parts, TextOf text_of, const char* between = ",") {
  return "[" + Listed(parts, between, text_of) + "]";
}

std::string Texts(const std::vector<std::string>& texts) { return Array(texts, JsonString); }

std::string Numbers(std::initializer_list<std::int64_t> numbers) {
  return Array(numbers, [](std::int64_t number) { return std::to_string(number); });
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
    return Texts(texts);
  }

  std::string Lanes() const {
    const auto json = [&](const TimelineLane& lane) {
      return "{\"path\":" + Texts(lane.path) + ",\"kind\":\"" +
             (lane.kind == LaneKind::kWork ? "work" : "messages") +
             "\",\"rank\":" + std::to_string(lane.rank) +
             ",\"label\":" + JsonString(LabelOf(lane)) + "}";
    };
    return Array(timeline_.lanes, json, ",\n");
  }

  /// "rank 0: vision.s0, language.s0"; empty for lanes that are named by their path.
  std::string LabelOf(const TimelineLane& lane) const {
    if (lane.kind != LaneKind::kWork) return "";
    const std::string label =
        "rank " + std::to_string(lane.rank) + ": " +
        Listed(lane.stages, ", ", [&](int stage) { return index_.StageName(stage); });
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
    return Array(modules_, [&](const std::string& module) {
      // Two or three letters need no abbreviation.
      return "{\"name\":" + JsonString(module) +
             ",\"short\":" + JsonString(module.size() <= 3 ? module : ShortOf(module)) + "}";
    });
  }

  std::string Stages() const {
    return Array(index_.trace().stages, [&](const StageId& stage) {
      const auto module = std::ranges::find(modules_, stage.module) - modules_.begin();
      return "[" + JsonString(ToString(stage)) + "," + std::to_string(module) + "]";
    });
  }

  std::string Slices() {
    arrow_of_.clear();
    for (std::size_t a = 0; a < timeline_.arrows.size(); ++a) {
      arrow_of_[timeline_.arrows[a].message] = static_cast<std::int64_t>(a);
    }
    for (const char* kind :
         {"F", "B", "reduce", "update", "exchange", "offload", "restore", "checkpoint"})
      NumberOf(kinds_, kind);
    return Array(timeline_.slices, [&](const LaneSlice& slice) {
      const TraceWork* const work = slice.work < 0 ? nullptr : &index_.work(slice.work);
      const bool pass = work != nullptr && IsPass(work->pass.kind);
      return Numbers({slice.lane, Since(slice.begin_ns), slice.end_ns - slice.begin_ns,
                      NumberOf(names_, SliceName(index_, slice)),
                      NumberOf(kinds_, work == nullptr ? "message" : ToString(work->pass.kind)),
                      ArrowOf(slice.message), work == nullptr ? -1 : work->pass.stage,
                      work == nullptr ? -1 : work->cores.without_core_ns,
                      pass ? index_.places().Of(work->pass).step : -1});
    });
  }

  std::int64_t ArrowOf(int message) const {
    const auto found = arrow_of_.find(message);
    return found == arrow_of_.end() ? -1 : found->second;
  }

  std::string Arrows() const {
    return Array(timeline_.arrows, [&](const Arrow& arrow) {
      return Numbers({arrow.from_lane, Since(arrow.sent_ns), arrow.slice,
                      ArrowOf(index_.message(arrow.message).cause)});
    });
  }

  std::string Steps() const {
    return Array(timeline_.steps, [&](const StepSpan& span) {
      return Numbers({span.step, Since(span.begin_ns), Since(span.end_ns)});
    });
  }

  std::string Counters() const {
    const auto point_json = [&](const CounterPoint& point) {
      return Numbers({Since(point.at_ns), point.value});
    };
    const auto json = [&](const LaneCounter& counter) {
      return "{\"path\":" + Texts(counter.path) + ",\"unit\":" + JsonString(counter.unit) +
             ",\"points\":" + Array(counter.points, point_json) + "}";
    };
    return Array(timeline_.counters, json, ",\n");
  }

  const TraceIndex& index_;
  const Timeline& timeline_;
  std::vector<std::string> modules_;
  Numbering names_;
  Numbering kinds_;
  std::map<int, std::int64_t> arrow_of_;
};

}  // namespace

std::string PageTimelineJson(const TraceIndex& index, const Timeline& timeline,
                             const std::string& bubble_json) {
  return Data(index, timeline).Write(bubble_json);
}

void WritePage(std::ostream& out, PageKind kind, const std::vector<PageRun>& runs) {
  const auto fact_json = [](const auto& fact) {
    return JsonString(fact.first) + ":" + JsonString(fact.second);
  };
  const auto json = [&](const PageRun& run) {
    return "{\"name\":" + JsonString(run.name) + ",\"facts\":{" +
           Listed(run.facts, ",", fact_json) + "},\"series\":" + run.series_json +
           ",\"without_timeline\":" + JsonString(run.without_timeline) +
           ",\n\"timeline\":" + (run.timeline_json.empty() ? "null" : run.timeline_json) + "}";
  };
  const std::string report = kind == PageKind::kReport ? "true" : "false";
  const std::string data = "{\"report\":" + report + ",\"runs\":" + Array(runs, json, ",\n") + "}";
  out << kPageBeforeData << WithoutTags(data) << kPageTimeline << kPageTables << kPageCharts;
}

}  // namespace troupe
