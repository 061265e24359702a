// What several processes noted, put together: who caused what, on one clock.
#include "trace/run_trace.hpp"

#include <catch2/catch.hpp>

#include "trace/recorder.hpp"

namespace troupe {
namespace {

ActorNumber Actor(int process, int number) {
  return static_cast<ActorNumber>(process) << kActorBits | static_cast<ActorNumber>(number);
}

/// Process 0 has stage a (actor 1), process 1 stage b (actor 1); their clocks differ by 1 ms.
struct Two {
  Recorder first{Options(0)};
  Recorder second{Options(1)};

  Two() {
    first.NameActor(Actor(0, 1), Stage(0, "a.s0"));
    first.NameActor(Actor(0, 2), DeviceActor(0));
    second.NameActor(Actor(1, 1), Stage(1, "b.s0"));
    second.SetClockOffset(-1'000'000);
  }
  static ActorId Stage(int stage, const std::string& name) {
    return {.kind = ActorKind::kStage, .stage = stage, .replica = 0, .of = name};
  }
  static RecorderOptions Options(int process) {
    RecorderOptions options;
    options.process = process;
    options.processes = {"n0", "n1", "n2"};
    options.stages = {{"a", 0}, {"b", 0}};
    options.links = {{"a>b", 0, 1, false}};
    options.types = {"error", "Activation", "Gradient"};
    options.capacity = 64;
    return options;
  }
  RunTrace Merged() const { return MergeTraces({first.Snapshot(), second.Snapshot()}, "run"); }
};

TraceRecord Message(ActorNumber sender, ActorNumber receiver, std::uint16_t type,
                    std::int64_t at_ns) {
  TraceRecord record;
  record.sender = sender;
  record.receiver = receiver;
  record.type = type;
  record.sent_ns = record.arrived_ns = at_ns;
  return record;
}

const TraceMessage& Find(const RunTrace& trace, const std::string& type, int which = 0) {
  for (const TraceMessage& message : trace.messages) {
    if (trace.types[static_cast<std::size_t>(message.type)] == type && which-- == 0) return message;
  }
  throw std::runtime_error("no " + type);
}

}  // namespace

TEST_CASE("a request of another process was sent by the handling that numbered it", "[trace]") {
  Two two;
  // a handles two messages; the second one sends requests 5 and 6.
  const auto earlier = two.first.Note(Message(0, Actor(0, 1), 0, 100));
  two.first.Begin(earlier, 110);
  two.first.End(earlier, 120, 3, 4);
  const auto handled = two.first.Note(Message(0, Actor(0, 1), 0, 200));
  two.first.Begin(handled, 210);
  two.first.End(handled, 240, 4, 6);
  TraceRecord request = Message(Actor(0, 1), Actor(1, 1), 1, 1'000'300);
  request.request = 6;
  request.unit = 3;
  request.round = 2;
  request.step = 12;
  const auto arrived = two.second.Note(request);
  two.second.Begin(arrived, 1'000'400);
  two.second.End(arrived, 1'000'500, 0, 0);

  const RunTrace trace = two.Merged();
  const TraceMessage& activation = Find(trace, "Activation");
  REQUIRE(activation.cause >= 0);
  const TraceMessage& cause = trace.messages[static_cast<std::size_t>(activation.cause)];
  CHECK(cause.begin_ns + trace.origin_ns == 210);
  CHECK(activation.sent_ns + trace.origin_ns == 240);
  CHECK(activation.arrived_ns + trace.origin_ns == 300);  // on the clock of process 0
  CHECK(activation.begin_ns + trace.origin_ns == 400);
  CHECK(trace.actors[static_cast<std::size_t>(activation.sender)].name == "stage a.s0 dp0");
  CHECK(trace.actors[static_cast<std::size_t>(activation.receiver)].process == 1);
  CHECK(activation.link == 0);
  CHECK(activation.step == 12);
  CHECK(cause.step == -1);
  CHECK(trace.missing == std::vector<std::string>{"n2"});
}

TEST_CASE("an answer to another process was caused by the handling that kept the promise",
          "[trace]") {
  Two two;
  TraceRecord request = Message(Actor(0, 1), Actor(1, 1), 1, 1'000'100);
  request.request = 9;
  request.unit = 4;
  request.round = 1;
  const auto asked = two.second.Note(request);
  two.second.Begin(asked, 1'000'110);
  two.second.End(asked, 1'000'120, 0, 0);
  const auto later = two.second.Note(Message(0, Actor(1, 1), 0, 1'000'200));
  two.second.Begin(later, 1'000'210);
  TraceRecord left = Message(Actor(1, 1), Actor(0, 1), 0, 1'000'220);
  left.kind = RecordKind::kAnswered;
  left.request = 9;
  left.cause = two.second.IdOf(later);
  two.second.Note(left);
  two.second.End(later, 1'000'230, 0, 0);
  TraceRecord answer = Message(Actor(1, 1), Actor(0, 1), 2, 300);
  answer.request = 9;
  answer.answer = 1;
  two.first.Note(answer);

  const RunTrace trace = two.Merged();
  const TraceMessage& gradient = Find(trace, "Gradient");
  REQUIRE(gradient.cause >= 0);
  CHECK(trace.messages[static_cast<std::size_t>(gradient.cause)].begin_ns + trace.origin_ns == 210);
  CHECK(gradient.sent_ns + trace.origin_ns == 220);
  CHECK(gradient.unit == 4);  // the answer does not say it, the question did
  CHECK(gradient.round == 1);
  CHECK(gradient.begin_ns == -1);
  REQUIRE(gradient.sender >= 0);  // whose name is in the file that is read last
  CHECK(trace.actors[static_cast<std::size_t>(gradient.sender)].name == "stage b.s0 dp0");
}

TEST_CASE("clocks that disagree do not let anything arrive before it was sent", "[trace]") {
  Two two;
  const auto handled = two.first.Note(Message(0, Actor(0, 1), 0, 100));
  two.first.Begin(handled, 110);
  two.first.End(handled, 5000, 0, 1);
  TraceRecord request = Message(Actor(0, 1), Actor(1, 1), 1, 1'000'200);
  request.request = 1;
  two.second.Note(request);
  const RunTrace trace = two.Merged();
  for (const TraceMessage& message : trace.messages) CHECK(message.sent_ns <= message.arrived_ns);
}

TEST_CASE("work belongs to the message whose handling it was", "[trace]") {
  Two two;
  const auto command = two.first.Note(Message(Actor(0, 1), Actor(0, 2), 1, 50));
  TraceRecord work;
  work.kind = RecordKind::kWork;
  work.cause = two.first.IdOf(command);
  work.work = static_cast<std::uint8_t>(WorkKind::kBackward);
  work.stage = 1;
  work.rank = 3;
  work.dp = 2;
  work.unit = 7;
  work.round = 5;
  work.begin_ns = 60;
  work.end_ns = 90;
  work.memory_kib = 3'000'000'000;  // 2.8 TiB
  two.first.Note(work);
  work.stage = 99;  // of no stage that there is
  two.first.Note(work);
  const RunTrace trace = two.Merged();
  REQUIRE(trace.work.size() == 1);
  CHECK(trace.work[0].message == 0);
  CHECK(trace.work[0].pass.kind == WorkKind::kBackward);
  CHECK(trace.work[0].pass.rank == 3);
  CHECK(trace.work[0].pass.end_ns - trace.work[0].pass.begin_ns == 30);
  CHECK(trace.work[0].memory.in_use_bytes == 3'072'000'000'000);
}

}  // namespace troupe
