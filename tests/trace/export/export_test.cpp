#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/trace/export/lint/lint.hpp"
#include "tests/trace/export/lint/perfetto_file.hpp"
#include "tests/trace/generated/generated.hpp"
#include "trace/export/exporters.hpp"

namespace troupe {
namespace {

generated::Spec Large() {
  generated::Spec spec;
  spec.dp = 2;
  spec.processes = 2;
  spec.evaluates_first = true;
  return spec;
}

std::string Perfetto(const TraceIndex& index, const Timeline& timeline) {
  std::ostringstream out;
  WritePerfetto(out, index, timeline);
  return out.str();
}

TEST_CASE("every message is an arrow and every arrow a message", "[trace]") {
  const RunTrace trace = generated::Generate(Large());
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  const auto messages = static_cast<std::int64_t>(trace.messages.size());
  CHECK(static_cast<std::int64_t>(timeline.arrows.size()) == messages);
  CHECK(Lint(Perfetto(index, timeline)).flows == messages);

  // Each arrow of the file names a message of the trace, from its sender to its receiver.
  const PerfettoFile file = ReadPerfetto(Perfetto(index, timeline));
  CHECK(file.starts == trace.messages.size());
  CHECK(file.ends == trace.messages.size());
  std::set<std::uint64_t> ids;
  for (const DrawnArrow& arrow : file.arrows) {
    ids.insert(arrow.id);
    const auto message = std::ranges::find(trace.messages, arrow.id, &TraceMessage::id);
    REQUIRE(message != trace.messages.end());
    CHECK(arrow.from == index.ActorName(message->sender));
    CHECK(arrow.to == index.ActorName(message->receiver));
  }
  CHECK(static_cast<std::int64_t>(ids.size()) == messages);
}

TEST_CASE("what is exported passes the importers' rules, whatever steps it is", "[trace]") {
  const RunTrace trace = generated::Generate(Large());
  const TraceIndex index(trace);
  const Steps steps(index);
  for (const std::vector<StepSpan>& spans :
       {steps.all(), std::vector<StepSpan>{}, std::vector<StepSpan>{steps.Of(2)}}) {
    const Timeline timeline = MakeTimeline(index, spans);
    const LintReport report = Lint(Perfetto(index, timeline));
    INFO(Format(report));
    CHECK(report.found.empty());
    CHECK(report.slices > 100);
    CHECK(report.counters > 20);
    std::vector<std::int64_t> until(timeline.lanes.size(), 0);
    for (const LaneSlice& slice : timeline.slices) {
      CHECK(slice.begin_ns >= until.at(static_cast<std::size_t>(slice.lane)));
      CHECK(slice.end_ns > slice.begin_ns);
      until.at(static_cast<std::size_t>(slice.lane)) = slice.end_ns;
    }
  }
}

TEST_CASE("a checkpoint is a slice among the work of each rank, with its step", "[trace]") {
  generated::Spec spec = Large();
  spec.steps = 4;
  spec.checkpoint_every = 2;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {Steps(index).Of(3)});
  int slices = 0;
  for (const LaneSlice& slice : timeline.slices) {
    if (SliceName(index, slice) != "checkpoint 2") continue;
    ++slices;
    CHECK(timeline.lanes[static_cast<std::size_t>(slice.lane)].path.back() == "work");
  }
  CHECK(slices == 10);  // devices
  const std::string content = Perfetto(index, timeline);
  CHECK_THAT(content, Catch::Contains("checkpoint 2"));
  CHECK(Lint(content).found.empty());
}

TEST_CASE("a message that comes before it was sent is drawn after it, and kept as it was",
          "[trace]") {
  RunTrace trace = generated::Generate({});
  const TraceMessage* early = nullptr;
  for (TraceMessage& m : trace.messages) {
    if (trace.types[static_cast<std::size_t>(m.type)] != "Slice" || m.unit != 2) continue;
    m.sent_ns = m.begin_ns + 6'000;  // clocks that are 6 us apart
    early = &m;
  }
  REQUIRE(early != nullptr);
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  for (const Arrow& arrow : timeline.arrows) {
    CHECK(timeline.slices.at(static_cast<std::size_t>(arrow.slice)).begin_ns > arrow.sent_ns);
  }
  const std::string content = Perfetto(index, timeline);
  CHECK(Lint(content).found.empty());
  const auto arrows = ReadPerfetto(content).arrows;
  const auto drawn = std::ranges::find(arrows, early->id, &DrawnArrow::id);
  REQUIRE(drawn != arrows.end());
  CHECK(drawn->begin_ns > drawn->sent_ns);
  CHECK(drawn->recorded_begin_ns == early->begin_ns);
}

TEST_CASE("a message without a handler has no arrow, and is counted", "[trace]") {
  generated::Spec spec;
  spec.lost_type = "Slice";
  spec.lost_unit = 5;
  const RunTrace trace = generated::Generate(spec);
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  CHECK(timeline.unhandled == 1);
  CHECK(timeline.arrows.size() + 1 == trace.messages.size());
  CHECK(timeline.messages() == static_cast<std::int64_t>(trace.messages.size()));
  CHECK(Lint(Perfetto(index, timeline)).found.empty());
}

TEST_CASE("microbatches in flight never exceed the limit of their stage", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  std::map<std::string, std::int64_t> most;
  for (const LaneCounter& counter : timeline.counters) {
    std::string path;
    for (const std::string& part : counter.path) path += "/" + part;
    for (const CounterPoint& point : counter.points) {
      most[path] = std::max(most[path], point.value);
    }
    CHECK((counter.unit != "microbatches" || counter.points.back().value == 0));
  }
  CHECK(most.at("/n0/vision/s0/in flight dp0") == 3);
  CHECK(most.at("/n0/language/s0/in flight dp0") == 2);
  CHECK(most.at("/n0/language/s1/in flight dp0") == 1);
  CHECK(most.at("/n0/vision>language/credits leader source.0") == 3);
}

TEST_CASE("memory is a counter of every process, in bytes", "[trace]") {
  const RunTrace trace = generated::Generate(Large());
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  std::vector<std::int64_t> pieces(2);
  std::vector<std::int64_t> ends(2);
  for (const TraceWork& work : trace.work) {
    const auto process = static_cast<std::size_t>(index.ProcessOf(work));
    ++pieces[process];
    ends[process] = std::max(ends[process], work.pass.end_ns);
  }
  const PerfettoFile file = ReadPerfetto(Perfetto(index, timeline));
  for (std::size_t p = 0; p < 2; ++p) {
    const auto& points = file.counters.at("/n" + std::to_string(p) + "/memory");
    REQUIRE(points.size() > 20);
    for (const auto& [at, bytes] : points) {
      const std::int64_t base = static_cast<std::int64_t>(p + 1) * 1'000'000;
      CHECK(bytes > base);
      CHECK(bytes <= base + 4096 * pieces[p]);
      CHECK((bytes - base) % 4096 == 0);
    }
    CHECK(points.back().first == timeline.end_ns);
    CHECK(points.back().second == static_cast<std::int64_t>(p + 1) * 1'000'000 + 4096 * pieces[p]);
  }
  // The unit of Perfetto's own: a counter (field 8) of which field 3 says 3, bytes.
  CHECK_THAT(Perfetto(index, timeline),
             Catch::Contains("memory") && Catch::Contains(std::string("\x42\x02\x18\x03")));
  std::ostringstream page;
  page << PageTimelineJson(index, timeline, "[]");
  CHECK_THAT(page.str(), Catch::Contains(R"({"path":["n1","memory"],"unit":"bytes","points":[[)"));

  RunTrace silent = trace;
  for (TraceWork& work : silent.work) work.memory = {};
  const TraceIndex silent_index(silent);
  for (const LaneCounter& counter : MakeTimeline(silent_index, {}).counters) {
    CHECK(counter.unit != "bytes");
  }
}

TEST_CASE("a stretch has all that is of its steps, and all that went on meanwhile", "[trace]") {
  generated::Spec spec = Large();
  RunTrace trace = generated::Generate(spec);
  {
    // The next step is announced, and an input read, while one runs; one answer comes late.
    const TraceIndex index(trace);
    const Steps steps(index);
    for (TraceMessage& m : trace.messages) {
      const std::string& type = trace.types[static_cast<std::size_t>(m.type)];
      if (type == "RoundBegin" && m.round == 2) m.sent_ns = m.arrived_ns = m.begin_ns = 10;
      if (type == "RoundBegin" && m.round == 3) m.sent_ns = steps.Of(2).begin_ns + 10;
      if (type == "StageReport" && m.round == 2) m.sent_ns = steps.Of(2).end_ns + 5;
    }
  }
  const TraceIndex index(trace);
  const StepSpan span = Steps(index).Of(2);
  const Timeline timeline = MakeTimeline(index, {span});
  std::set<int> drawn;
  for (const Arrow& arrow : timeline.arrows) drawn.insert(arrow.message);
  CHECK(drawn.size() == timeline.arrows.size());
  std::int64_t of_step = 0;
  for (int i = 0; static_cast<std::size_t>(i) < trace.messages.size(); ++i) {
    const TraceMessage& m = trace.messages[static_cast<std::size_t>(i)];
    const bool meanwhile = m.sent_ns < span.end_ns && m.end_ns >= span.begin_ns;
    INFO(index.TypeName(i) << " of round " << m.round);
    CHECK((drawn.count(i) > 0) == (m.round == 2 || meanwhile));
    of_step += m.round == 2 ? 1 : 0;
  }
  CHECK(timeline.of_steps == of_step);
  CHECK(timeline.messages() > of_step);
  const LintReport report = Lint(Perfetto(index, timeline));
  INFO(Format(report));
  CHECK(report.found.empty());
  CHECK(report.flows == static_cast<std::int64_t>(drawn.size()));
}

TEST_CASE("a message to an actor whose name is lost has no arrow, and is counted", "[trace]") {
  RunTrace trace = generated::Generate({});
  trace.messages[7].receiver = -1;
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  CHECK(timeline.nameless == 1);
  CHECK(timeline.unhandled == 0);
  CHECK(timeline.messages() == static_cast<std::int64_t>(trace.messages.size()));
}

TEST_CASE("names that would break a file are written so that they do not", "[trace]") {
  RunTrace trace = generated::Generate({});
  trace.types[2] = "Evil\n\"\\\x01</script>";
  for (TraceActor& actor : trace.actors) {
    actor.id.of += "\x12\xff";
    actor.name += "\x12\xff";
  }
  trace.stages.front().module += "\x7f";
  trace.run = "</script><script>alert(1)</script>";
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  const std::string perfetto = Perfetto(index, timeline);
  CHECK(Lint(perfetto).found.empty());
  for (const TraceActor& actor : trace.actors) {
    CHECK(perfetto.find(actor.name) == std::string::npos);
  }
  std::ostringstream page;
  PageRun run;
  run.name = trace.run;
  run.timeline_json = PageTimelineJson(index, timeline, "[]");
  WritePage(page, PageKind::kTimeline, {run});
  CHECK(page.str().find("alert(1)</script>") == std::string::npos);
  CHECK(page.str().find("http") == std::string::npos);  // nothing is fetched
}

}  // namespace
}  // namespace troupe
