#include "tests/trace/export/lint/lint.hpp"

#include <catch2/catch.hpp>

#include "files/proto.hpp"
#include "trace/export/track_event.hpp"

namespace troupe {
namespace {

using namespace track_event;

/// The only rule that was broken; all of them where there are more.
std::string RuleOf(const std::string& content) {
  std::string rules;
  for (const auto& [rule, count] : Lint(content).found) rules += (rules.empty() ? "" : " ") + rule;
  return rules;
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

TEST_CASE("whole slices on known tracks are fine", "[trace]") {
  const Proto proto = Proto().Track(1).Track(2, 1).On(2, event::kBegin, 5).On(2, event::kEnd, 9);
  const LintReport report = Lint(proto.content());
  CHECK(report.found.empty());
  CHECK(report.slices == 1);
  CHECK(report.tracks == 2);
}

TEST_CASE("slices must begin and end", "[trace]") {
  CHECK(RuleOf(Proto().Track(1).On(1, event::kBegin, 5).content()) == "nesting");
  CHECK(RuleOf(Proto().Track(1).On(1, event::kEnd, 5).content()) == "nesting");
  CHECK(RuleOf(Proto().Track(1).On(1, 9, 5).content()) == "type");
}

TEST_CASE("tracks must be described, once, below named ones", "[trace]") {
  CHECK(RuleOf(Proto().Track(1).On(3, event::kInstant, 5).content()) == "unknown-track");
  CHECK(RuleOf(Proto().Track(2, 7).content()) == "parent");
  CHECK(RuleOf(Proto().Track(1, 2).Track(2, 1).content()) == "parent");
  CHECK(RuleOf(Proto().Track(1, 0, descriptor::kProcess).Track(2, 1).content()) == "parent");
  CHECK(RuleOf(Proto().Track(1).Track(1, 0, 0, "other").content()) == "track-id");
  CHECK(RuleOf(Proto().Track(0).content()) == "track-id");
  CHECK(RuleOf(Proto().Track(1, 0, 0, "a\x02").content()) == "text");
}

TEST_CASE("arrows must start, end, and do so in this order", "[trace]") {
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

TEST_CASE("counters count on tracks of their own", "[trace]") {
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

TEST_CASE("packets that are dropped, cut short or no packets", "[trace]") {
  const std::string whole = Proto().Track(1).On(1, event::kInstant, 5).content();
  CHECK(RuleOf(Proto().Track(1).On(1, event::kInstant, 5, 0, 0, false).content()) == "sequence");
  CHECK(RuleOf(Proto().Track(1).On(1, event::kInstant, ~std::uint64_t{4}).content()) ==
        "timestamp");
  CHECK(RuleOf(whole.substr(0, whole.size() - 1)) == "truncated");
}

TEST_CASE("a file that is not a timeline is one line", "[trace]") {
  for (const std::string& content :
       {std::string(), std::string("no trace at all"), std::string(R"({"traceEvents":[]})"),
        std::string("\n\nshort lines\n"), std::string(100, '\0')}) {
    CHECK(Format(Lint(content)) == "no timeline: it has no packets of a trace\n");
    CHECK(RuleOf(content) == "no-timeline");
  }
}

TEST_CASE("the last line has the counts, and the rules of the findings", "[trace]") {
  Proto proto = Proto()
                    .Track(1)
                    .Track(2, 1, descriptor::kCounter)
                    .On(1, event::kBegin, 5, event::kFlow, 8)
                    .On(1, event::kEnd, 9)
                    .On(1, event::kInstant, 10, event::kTerminatingFlow, 8)
                    .On(2, event::kCounter, 5, event::kCounterValue, 3);
  CHECK(Format(Lint(proto.content())) ==
        "4 events on 2 tracks, among them 1 slice and 1 counter point; 1 arrow starts and ends: "
        "nothing an importer would trip over\n");
  for (std::uint64_t flow = 20; flow < 25; ++flow) {
    proto.On(1, event::kInstant, 11, event::kFlow, flow);
  }
  const std::string text = Format(Lint(proto.On(1, event::kBegin, 12).content()));
  CHECK_THAT(text, Catch::Contains("\n... flow-end: 2 more\n"));
  CHECK_THAT(text,
             Catch::EndsWith("; 1 arrow starts and ends: 6 findings (5 flow-end, 1 nesting)\n"));
}

TEST_CASE("no prefix and no damaged byte makes the linter fail", "[trace]") {
  const std::string content =
      Proto().Track(1).On(1, event::kBegin, 5).On(1, event::kEnd, 6).content();
  for (std::size_t i = 0; i < content.size(); ++i) {
    Lint(content.substr(0, i));
    for (const char byte : {'\0', '\xff', '"', '9', '{'}) {
      std::string damaged = content;
      damaged[i] = byte;
      CHECK_NOTHROW(Lint(damaged));
    }
  }
}

}  // namespace
}  // namespace troupe
