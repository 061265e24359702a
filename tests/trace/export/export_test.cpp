#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/trace/generated/generated.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/lint.hpp"

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

std::string Chrome(const TraceIndex& index, const Timeline& timeline) {
  std::ostringstream out;
  WriteChrome(out, index, timeline);
  return out.str();
}

TEST_CASE("every message is an arrow and every arrow a message", "[trace]") {
  const RunTrace trace = generated::Generate(Large());
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  const auto messages = static_cast<std::int64_t>(trace.messages.size());
  CHECK(static_cast<std::int64_t>(timeline.arrows.size()) == messages);
  CHECK(Lint(Perfetto(index, timeline)).flows == messages);
  CHECK(Lint(Chrome(index, timeline)).flows == messages);

  // Each arrow of the file names a message of the trace, from its sender to its receiver.
  const auto json = nlohmann::json::parse(Chrome(index, timeline));
  std::map<std::string, std::string> to;
  std::set<std::uint64_t> ids;
  for (const auto& event : json["traceEvents"]) {
    if (event.contains("flow_out")) to[event["bind_id"]] = event["args"]["to"];
  }
  for (const auto& event : json["traceEvents"]) {
    if (!event.contains("flow_in")) continue;
    const std::uint64_t id = event["args"]["id"];
    ids.insert(id);
    const auto message = std::find_if(trace.messages.begin(), trace.messages.end(),
                                      [&](const TraceMessage& m) { return m.id == id; });
    REQUIRE(message != trace.messages.end());
    CHECK(event["args"]["from"] == index.ActorName(message->sender));
    CHECK(to.at(event["bind_id"]) == index.ActorName(message->receiver));
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
    for (const std::string& content : {Perfetto(index, timeline), Chrome(index, timeline)}) {
      const LintReport report = Lint(content);
      INFO(Format(report));
      CHECK(report.found.empty());
      CHECK(report.slices > 100);
      CHECK(report.counters > 20);
    }
  }
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
  for (const Arrow& arrow : timeline.arrows) CHECK(arrow.begin_ns > arrow.sent_ns);
  const std::string chrome = Chrome(index, timeline);
  CHECK(Lint(chrome).found.empty());
  CHECK(Lint(Perfetto(index, timeline)).found.empty());
  CHECK_THAT(chrome, Catch::Contains("\"begin_ns\":" + std::to_string(early->begin_ns)));
}

TEST_CASE("a message that nobody handled has no arrow, and is counted", "[trace]") {
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
  for (const std::string& content : {Perfetto(index, timeline), Chrome(index, timeline)}) {
    const LintReport report = Lint(content);
    INFO(Format(report));
    CHECK(report.found.empty());
    CHECK(report.flows == static_cast<std::int64_t>(drawn.size()));
  }
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
  trace.run = "</script><script>alert(1)</script>";
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  CHECK(Lint(Chrome(index, timeline)).found.empty());
  std::ostringstream page;
  WritePage(page, index, timeline, {"[]", "[]"});
  CHECK(page.str().find("alert(1)</script>") == std::string::npos);
  CHECK(page.str().find("http") == std::string::npos);  // nothing is fetched
}

}  // namespace
}  // namespace troupe
