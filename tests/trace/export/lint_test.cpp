#include "tests/trace/export/lint/lint.hpp"

#include <catch2/catch.hpp>

#include "trace/export/proto.hpp"
#include "trace/export/track_event.hpp"

namespace troupe {
namespace {

using namespace track_event;

std::string Event(const std::string& fields) { return "{\"pid\":1,\"tid\":1," + fields + "}"; }

std::string Json(const std::string& events) { return "{\"traceEvents\":[" + events + "]}"; }

/// The only rule that was broken; all of them where there are more.
std::string RuleOf(const std::string& content) {
  std::string rules;
  for (const auto& [rule, count] : Lint(content).found) rules += (rules.empty() ? "" : " ") + rule;
  return rules;
}

std::string Slice(const std::string& ts, const std::string& dur, const std::string& more = "") {
  return Event("\"name\":\"F\",\"ph\":\"X\",\"ts\":" + ts + ",\"dur\":" + dur + more);
}

TEST_CASE("JSON: slices that touch or nest are fine, those that overlap in part are found",
          "[trace]") {
  CHECK(RuleOf(Json(Slice("0", "10") + "," + Slice("10", "5") + "," + Slice("2", "3"))).empty());
  CHECK(RuleOf(Json(Slice("0", "10") + "," + Slice("9.999", "5"))) == "nesting");
}

TEST_CASE("JSON: arrows must start, end, and do so in this order", "[trace]") {
  const auto flow = [](const char* ts, const char* id, const char* way) {
    return Slice(ts, "1", std::string(",\"bind_id\":\"") + id + "\",\"" + way + "\":true");
  };
  CHECK(RuleOf(Json(flow("0", "0x1f", "flow_out") + "," + flow("2", "0x1f", "flow_in"))).empty());
  CHECK(RuleOf(Json(flow("6", "1", "flow_out") + "," + flow("0", "1", "flow_in"))) == "flow-order");
  CHECK(RuleOf(Json(flow("0", "1", "flow_out"))) == "flow-end");
  CHECK(RuleOf(Json(flow("0", "1", "flow_in"))) == "flow-start");
  CHECK(RuleOf(Json(flow("0", "1", "flow_out") + "," + flow("1", "1", "flow_out") + "," +
                    flow("4", "1", "flow_in"))) == "flow-id");
  CHECK(RuleOf(Json(flow("0", "xyz", "flow_out") + "," + flow("2", "xyz", "flow_in"))) ==
        "flow-id");
}

TEST_CASE("JSON: an old flow's end must say that it ends here", "[trace]") {
  const std::string start = Event(R"("name":"m","cat":"c","ph":"s","id":"1","ts":1)");
  const std::string end = R"("name":"m","cat":"c","ph":"f","id":"1","ts":2)";
  CHECK(RuleOf(Json(start + "," + Event(end + R"(,"bp":"e")"))).empty());
  CHECK(RuleOf(Json(start + "," + Event(end))) == "flow-bind");
}

TEST_CASE("JSON: processes and threads count from 1", "[trace]") {
  CHECK(RuleOf(R"([{"name":"a","ph":"X","ts":0,"dur":1,"pid":0,"tid":1}])") == "pid");
  CHECK(RuleOf(R"([{"name":"a","ph":"X","ts":0,"dur":1,"pid":1,"tid":-4}])") == "pid");
  CHECK(RuleOf(R"([{"name":"a","ph":"X","ts":0,"dur":1,"pid":1}])") == "pid");
}

TEST_CASE("JSON: only a bare array may be cut short", "[trace]") {
  CHECK(RuleOf("[" + Slice("0", "1") + ",").empty());
  CHECK(RuleOf("[" + Slice("0", "1") + ",{\"name\":\"b").empty());
  CHECK(RuleOf("{\"traceEvents\":[" + Slice("0", "1")) == "truncated");
  CHECK(RuleOf("{\"traceEvents\":[1 2]}") == "malformed");
  CHECK(RuleOf("{\"other\":[]}") == "no-timeline");
}

TEST_CASE("JSON: a control character in a string is fatal", "[trace]") {
  CHECK(RuleOf(Json(Event("\"name\":\"a\nb\",\"ph\":\"i\",\"ts\":0"))) == "text");
}

TEST_CASE("JSON: fields that an importer needs", "[trace]") {
  CHECK(RuleOf(Json(Event(R"("name":"a","ph":"X","ts":0)"))) == "duration");
  CHECK(RuleOf(Json(Event(R"("name":"a","ph":"X","ts":"x","dur":1)"))) == "time");
  CHECK(RuleOf(Json(Slice("-5", "3"))) == "time");
  CHECK(RuleOf(Json(Slice("1700000000000000.5", "1"))) == "time-base");
  CHECK(RuleOf(Json(Event(R"("name":"a","ph":"?","ts":0)"))) == "phase");
  CHECK(RuleOf(Json(Event(R"("name":"a","ph":"E","ts":0)"))) == "nesting");
  CHECK(RuleOf(Json(Event(R"("name":"a","ph":"B","ts":0)"))) == "nesting");
  CHECK(RuleOf(Json(Event(R"("ph":"i","ts":0)"))) == "name");
  CHECK(RuleOf(Json(Event(R"("name":"c","ph":"C","ts":0,"args":{"x":"y"})"))) == "counter");
  CHECK(RuleOf(Json(Event(R"("name":"process_labels","ph":"M","args":{})"))) == "metadata");
  CHECK(RuleOf(Json(Event(R"("name":"a","ph":"b","ts":0)"))) == "async-id");
}

/// A track, events on it, one packet each.
class Proto {
 public:
  Proto& Track(std::uint64_t uuid, std::uint64_t parent = 0, int extra = 0,
               const std::string& name = "t") {
    ProtoWriter track;
    track.Varint(descriptor::kUuid, uuid);
    track.Text(descriptor::kName, name);
    if (parent != 0) track.Varint(descriptor::kParent, parent);
    if (extra != 0) track.Message(extra, {});
    ProtoWriter packet;
    packet.Message(packet::kDescriptor, track);
    return Put(packet);
  }
  Proto& On(std::uint64_t track, int type, std::uint64_t at_ns, int flow_field = 0,
            std::uint64_t flow = 0, bool sequence = true) {
    ProtoWriter event;
    event.Varint(event::kType, static_cast<std::uint64_t>(type));
    event.Varint(event::kTrack, track);
    if (type == event::kBegin) event.Text(event::kName, "F");
    if (flow_field == event::kCounterValue) event.Varint(flow_field, flow);
    if (flow_field != 0 && flow_field != event::kCounterValue) event.Fixed64(flow_field, flow);
    ProtoWriter packet;
    packet.Varint(packet::kTimestamp, at_ns);
    if (sequence) packet.Varint(packet::kSequence, 1);
    packet.Message(packet::kEvent, event);
    return Put(packet);
  }
  Proto& Put(const ProtoWriter& packet) {
    ProtoWriter trace;
    trace.Message(kPacket, packet);
    content_ += trace.bytes();
    return *this;
  }
  const std::string& content() const { return content_; }

 private:
  std::string content_;
};

TEST_CASE("protobuf: whole slices on known tracks are fine", "[trace]") {
  const Proto proto = Proto().Track(1).Track(2, 1).On(2, event::kBegin, 5).On(2, event::kEnd, 9);
  const LintReport report = Lint(proto.content());
  CHECK(report.found.empty());
  CHECK(report.slices == 1);
  CHECK(report.tracks == 2);
}

TEST_CASE("protobuf: slices must begin and end", "[trace]") {
  CHECK(RuleOf(Proto().Track(1).On(1, event::kBegin, 5).content()) == "nesting");
  CHECK(RuleOf(Proto().Track(1).On(1, event::kEnd, 5).content()) == "nesting");
  CHECK(RuleOf(Proto().Track(1).On(1, 9, 5).content()) == "type");
}

TEST_CASE("protobuf: tracks must be described, once, below named ones", "[trace]") {
  CHECK(RuleOf(Proto().Track(1).On(3, event::kInstant, 5).content()) == "unknown-track");
  CHECK(RuleOf(Proto().Track(2, 7).content()) == "parent");
  CHECK(RuleOf(Proto().Track(1, 2).Track(2, 1).content()) == "parent");
  CHECK(RuleOf(Proto().Track(1, 0, descriptor::kProcess).Track(2, 1).content()) == "parent");
  CHECK(RuleOf(Proto().Track(1).Track(1, 0, 0, "other").content()) == "track-id");
  CHECK(RuleOf(Proto().Track(0).content()) == "track-id");
  CHECK(RuleOf(Proto().Track(1, 0, 0, "a\x02").content()) == "text");
}

TEST_CASE("protobuf: arrows must start, end, and do so in this order", "[trace]") {
  const auto flows = [](std::uint64_t start, std::uint64_t end) {
    return Proto()
        .Track(1)
        .On(1, event::kInstant, start, event::kFlow, 8)
        .On(1, event::kInstant, end, event::kTerminatingFlow, 8)
        .content();
  };
  CHECK(RuleOf(flows(5, 6)).empty());
  CHECK(RuleOf(flows(6, 5)) == "flow-order");
  CHECK(RuleOf(Proto().Track(1).On(1, event::kInstant, 5, event::kFlow, 8).content()) ==
        "flow-end");
  CHECK(RuleOf(Proto().Track(1).On(1, event::kInstant, 5, event::kTerminatingFlow, 8).content()) ==
        "flow-start");
}

TEST_CASE("protobuf: counters count on tracks of their own", "[trace]") {
  CHECK(RuleOf(Proto()
                   .Track(1, 0, descriptor::kCounter)
                   .On(1, event::kCounter, 5, event::kCounterValue, 3)
                   .content())
            .empty());
  CHECK(RuleOf(Proto().Track(1, 0, descriptor::kCounter).On(1, event::kCounter, 5).content()) ==
        "counter");
  CHECK(RuleOf(Proto().Track(1).On(1, event::kCounter, 5, event::kCounterValue, 3).content()) ==
        "counter");
}

TEST_CASE("protobuf: packets that are dropped, cut short or no packets", "[trace]") {
  const std::string whole = Proto().Track(1).On(1, event::kInstant, 5).content();
  CHECK(RuleOf(Proto().Track(1).On(1, event::kInstant, 5, 0, 0, false).content()) == "sequence");
  CHECK(RuleOf(Proto().Track(1).On(1, event::kInstant, ~std::uint64_t{4}).content()) ==
        "timestamp");
  CHECK(RuleOf(whole.substr(0, whole.size() - 1)) == "truncated");
}

TEST_CASE("what is no timeline is one line, whatever it is", "[trace]") {
  const auto text = [](const std::string& content) { return Format(Lint(content)); };
  CHECK(text("") == "no timeline: it is empty\n");
  CHECK(text("\x89PNG\r\n\x1a\n more") == "no timeline: it is a PNG picture\n");
  CHECK(text("TRPTRACE....") ==
        "no timeline: it is what a process of a run noted: `troupe trace export` makes a timeline "
        "of it\n");
  const std::string neither =
      "no timeline: it is neither JSON, nor protobuf with packets of a trace\n";
  CHECK(text("no trace at all") == neither);
  CHECK(text("\n\nshort lines\n") == neither);
  CHECK(text(std::string(100, '\0')) == neither);
  CHECK(text(R"({"loss": 3, "events": []})") ==
        "no timeline: expected an array of events, or an object with \"traceEvents\"\n");
  CHECK(text(R"([{"step": 1}, {"step": 2}])") ==
        "no timeline: it is JSON, but nothing in it is an event with \"ph\"\n");
  CHECK(text("[1, 2]") == text(R"([{"step": 1}])"));
  CHECK(text("{\"traceEvents\":[]}") ==
        "json: 0 events on 0 tracks, among them 0 slices and 0 counter points; 0 arrows start and "
        "end: nothing an importer would trip over\n");
}

TEST_CASE("the last line says what was counted, and of which rules the findings are", "[trace]") {
  const auto flow = [](const char* ts, const char* id, const char* way) {
    return Slice(ts, "1", std::string(",\"bind_id\":\"") + id + "\",\"" + way + "\":true");
  };
  const std::string counter = Event(R"("name":"c","ph":"C","ts":0,"args":{"x":1})");
  CHECK(Format(Lint(
            Json(flow("0", "1", "flow_out") + "," + flow("2", "1", "flow_in") + "," + counter))) ==
        "json: 3 events on 1 track, among them 2 slices and 1 counter point; 1 arrow starts and "
        "ends: nothing an importer would trip over\n");
  std::string events;
  for (int i = 0; i < 5; ++i) events += flow("0", std::to_string(i).c_str(), "flow_out") + ",";
  const std::string text = Format(Lint(Json(events + Slice("0.5", "1"))));
  CHECK_THAT(text, Catch::Contains("\n... flow-end: 2 more\n"));
  CHECK_THAT(text,
             Catch::EndsWith("; 0 arrows start and end: 6 findings (5 flow-end, 1 nesting)\n"));
}

TEST_CASE("no prefix and no damaged byte makes the linter fail", "[trace]") {
  const std::string proto =
      Proto().Track(1).On(1, event::kBegin, 5).On(1, event::kEnd, 6).content();
  const std::string json = Json(Slice("0", "1", R"(,"bind_id":"1","flow_out":true)"));
  for (const std::string& content : {proto, json}) {
    for (std::size_t i = 0; i < content.size(); ++i) {
      Lint(content.substr(0, i));
      for (const char byte : {'\0', '\xff', '"', '9', '{'}) {
        std::string damaged = content;
        damaged[i] = byte;
        CHECK_NOTHROW(Lint(damaged));
      }
    }
  }
}

}  // namespace
}  // namespace troupe
