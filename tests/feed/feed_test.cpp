// Feed machines and the processes that take their samples, over the loopback interface.
#include <catch2/catch.hpp>

#include "cluster/dialer.hpp"
#include "feed/preparation.hpp"
#include "tests/feed/loopback.hpp"

namespace troupe {
namespace {

using Catch::Contains;

/// A connection that has proven the feed key, for a test that plays a machine.
FeedChannel Connect(const Address& at) {
  Dialer dialer(FeedJoinKey(TestKey().Feed()),
                {at, Purpose::kFeed, kFeedMachine, kFeedTaker, 0, {}, {}});
  PollSet polls;
  for (Dialer::Status status = dialer.status(); status != Dialer::Status::kConnected;) {
    polls.Clear();
    dialer.AddTo(polls);
    polls.Wait(dialer.NextDeadline());
    status = dialer.Serve(polls, std::chrono::steady_clock::now());
    if (status == Dialer::Status::kFailed) throw std::runtime_error(dialer.error());
  }
  return {dialer.Take(), Side::kInitiator};
}

std::optional<FeedMessage> NextOf(FeedChannel& channel) {
  PollSet polls;
  const Deadline until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < until) {
    channel.Serve();
    if (auto message = channel.Next()) return message;
    if (!channel.open()) return std::nullopt;
    polls.Clear();
    polls.Add(channel.fd(), channel.events());
    polls.Wait(until);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE_METHOD(PortFixture, "a machine prepares samples of every size", "[feed]") {
  auto machine = StartMachine(MachineOptions(port.address(), "f0", lines));
  CHECK(taker.Use(0)->name() == "f0");
  CHECK(taker.Use(0)->credits() == 4);
  constexpr auto kPiece = static_cast<std::int64_t>(kFeedPiece);
  const std::vector<std::int64_t> sizes = {0, 1, kPiece - 1, kPiece, kPiece + 1, 5'000'000};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    taker.Ask(0, {.row = static_cast<std::int64_t>(i), .bytes = sizes[i]});
  }
  const auto samples = taker.AwaitSamples(sizes.size());
  CHECK(samples.size() == sizes.size());
  for (const Taker::Sample& sample : samples) {
    CHECK(IsSampleOf(sample.ticket, sample.prepared.sample));
    CHECK(sample.prepared.phase_ns.size() == 3);
  }
  port.End(DoneProblem());
  CHECK(machine.get() == DoneProblem());
  taker.AwaitGone(1);
  CHECK_THAT(lines.all(), Contains("preparing samples for the job at 127.0.0.1") &&
                              Contains("feed machine f0 has come from 127.0.0.1 (pid 7)"));
}

namespace {

/// Row 0 takes until the test lets it go on.
class GatedSource : public PatternSource {
 public:
  std::unique_ptr<SampleWork> Begin(const SampleTicket& ticket) const override {
    if (ticket.row == 0) {
      began.set_value();
      gate.get_future().wait();
    }
    return PatternSource::Begin(ticket);
  }
  mutable std::promise<void> began;
  mutable std::promise<void> gate;
};

}  // namespace

TEST_CASE("the samples of the earliest microbatches are prepared first", "[feed]") {
  const GatedSource source;
  WakeUp wake_up;
  Preparation preparation(source, 1, wake_up);
  const auto add = [&](std::int64_t microbatch, std::int64_t link) {
    preparation.Add(link, {microbatch, microbatch, {.row = microbatch}});
  };
  preparation.Add(1, {9, 9, {.row = 0}});
  source.began.get_future().wait();
  for (const std::int64_t microbatch : {8, 6, 7}) add(microbatch, 1);
  add(5, 2);
  add(4, 3);
  preparation.Drop(3);
  source.gate.set_value();
  std::vector<std::pair<std::int64_t, std::int64_t>> done;
  while (done.size() < 5) {
    for (const auto& outcome : preparation.TakeOutcomes()) {
      done.emplace_back(outcome.link,
                        std::get<Preparation::Prepared>(outcome.result).header.number);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(done ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 9}, {2, 5}, {1, 6}, {1, 7}, {1, 8}});
  CHECK(preparation.IsIdle());
}

TEST_CASE("a machine may come before the job, and outlives it", "[feed]") {
  Lines lines;
  Taker taker;
  Socket listener = LoopbackListener();
  const Address at = listener.local_address();
  listener = Socket();
  auto machine = StartMachine(MachineOptions(at, "f0", lines));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  {
    FeedPort port(Socket::Listen(at), PortOptions(lines));
    taker.ListenAt(port);
    taker.Use(0);
    taker.Ask(0, {.row = 3, .bytes = 100});
    taker.AwaitSamples(1);
  }
  taker.AwaitGone(1);
  FeedPort again(Socket::Listen(at), PortOptions(lines));
  taker.ListenAt(again);
  taker.Use(1);
  taker.Ask(1, {.row = 4, .bytes = 100});
  CHECK(taker.AwaitSamples(2)[1].ticket.row == 4);
  again.End({"n1 was lost", JoinFault::kEnded});
  CHECK(machine.get() == JoinProblem{"n1 was lost", JoinFault::kEnded});
}

TEST_CASE("a machine gives up when the job does not come", "[feed]") {
  Lines lines;
  Socket listener = LoopbackListener();
  auto options = MachineOptions(listener.local_address(), "f0", lines);
  listener = Socket();
  options.patience = std::chrono::seconds(1);
  const JoinProblem end = StartMachine(options).get();
  CHECK(end.fault == JoinFault::kAbsent);
  CHECK_THAT(end.text, Contains("has not come within 1 s (connection refused)"));
}

TEST_CASE("one machine serves all processes of a job", "[feed]") {
  Lines lines;
  FeedPort first(LoopbackListener(), PortOptions(lines));
  FeedPort other(LoopbackListener(), PortOptions(lines, /*leads=*/false));
  FeedPort third(LoopbackListener(), PortOptions(lines, /*leads=*/false));
  Taker takers[3];
  takers[0].ListenAt(first);
  takers[1].ListenAt(other);
  takers[2].ListenAt(third);
  first.Tell({other.address()});
  auto machine = StartMachine(MachineOptions(first.address(), "f0", lines));
  const auto take = [&](std::size_t i, std::int64_t row) {
    takers[i].Use(0);
    takers[i].Ask(0, {.row = row, .bytes = 2'000'000});
    const auto samples = takers[i].AwaitSamples(1);
    CHECK(IsSampleOf(samples[0].ticket, samples[0].prepared.sample));
  };
  take(0, 10);
  take(1, 11);
  first.Tell({third.address()});  // the job has met again
  take(2, 12);
  takers[1].AwaitGone(1);
  first.End(DoneProblem());
  machine.get();
}

TEST_CASE_METHOD(PortFixture, "a machine with another key, build or data is refused", "[feed]") {
  auto options = MachineOptions(port.address(), "f0", lines);
  SECTION("key") {
    options.key = RunKey::Generate().Feed();
    const JoinProblem end = StartMachine(options).get();
    CHECK(end.fault == JoinFault::kRunKey);
    CHECK_THAT(end.text, Contains("has another key"));
  }
  SECTION("build") {
    options.hello.build = "build 2";
    CHECK(StartMachine(options).get() ==
          JoinProblem{"it is built from build 2, the job from build 1", JoinFault::kBuild});
    CHECK_THAT(lines.all(), Contains("feed machine f0 (127.0.0.1) is not used: it is built from"));
  }
  SECTION("data") {
    options.hello.facts = "data.seed = 2\n";
    CHECK(StartMachine(options).get().text ==
          "its samples would differ: data.seed is 2, the job has 1");
  }
  // Others are not affected.
  auto machine = StartMachine(MachineOptions(port.address(), "f1", lines));
  CHECK(taker.Use(0)->name() == "f1");
  port.End(DoneProblem());
  machine.get();
}

TEST_CASE_METHOD(PortFixture, "a machine that cannot prepare a sample is not used any more",
                 "[feed]") {
  auto machine = StartMachine(MachineOptions(port.address(), "f0", lines));
  taker.Use(0);
  taker.Ask(0, {.row = -3, .bytes = 1});
  CHECK(machine.get().text == "it cannot prepare a sample: row -3 is bad");
  taker.AwaitGone(1);
}

TEST_CASE_METHOD(PortFixture, "the process can dismiss a machine", "[feed]") {
  auto machine = StartMachine(MachineOptions(port.address(), "f0", lines));
  taker.Use(0)->Dismiss("it sent another sample");
  CHECK(machine.get().text == "it sent another sample");
  taker.AwaitGone(1);
  // Its link may not have heard of it yet.
  taker.Ask(0, {});
}

TEST_CASE_METHOD(PortFixture, "the job reports a late machine, and that it answers again",
                 "[feed]") {
  auto machine = StartMachine(MachineOptions(port.address(), "f0", lines));
  const auto one = taker.Use(0);
  for (const bool is_late : {true, false, true}) {
    one->SetLate(is_late);
    lines.Await(is_late ? "feed machine f0 is late with its samples" : "f0 answers again");
    lines.Clear();
  }
  port.End(DoneProblem());
  machine.get();
}

TEST_CASE("when the job meets again, machines drop what they were asked for and come again",
          "[feed]") {
  Lines lines;
  FeedPort port(LoopbackListener(), PortOptions(lines));
  Taker before;
  before.ListenAt(port);
  auto options = MachineOptions(port.address(), "f0", lines);
  options.threads = 1;
  auto machine = StartMachine(options);
  before.Use(0);
  for (std::int64_t row = 0; row < 4; ++row) before.Ask(0, {.row = row, .bytes = 20'000'000});
  port.Forget();
  before.Ask(0, {.row = 5, .bytes = 1});  // its link may not have heard of it yet
  before.Use(0);
  Taker taker;
  taker.ListenAt(port);
  taker.Use(0);
  taker.Ask(0, {.row = 2, .bytes = 5});
  CHECK(taker.AwaitSamples(1)[0].ticket.row == 2);
  before.AwaitGone(0);
  CHECK(before.AwaitSamples(0).empty());
  port.Forget();  // a job that has ended still sends the reason
  port.End(DoneProblem());
  CHECK(machine.get() == DoneProblem());
}

TEST_CASE_METHOD(PortFixture, "a machine that vanishes is gone, whatever it was asked for",
                 "[feed]") {
  {
    FeedChannel channel = Connect(port.address());
    channel.Send(FeedHello{"f0", "build 1", "data.seed = 1\n", 7, 2});
    CHECK(std::holds_alternative<FeedPlaces>(*NextOf(channel)));
    taker.Use(0);
    taker.Ask(0, {.bytes = 100});
    std::get<FeedOrder>(*NextOf(channel));
    channel.Send(FeedSample{.number = 0, .size = 100});
    channel.Send(FeedBytes{std::vector<std::byte>(99)});
    channel.Serve();
  }
  taker.AwaitGone(1);
  CHECK(taker.AwaitSamples(0).empty());
  CHECK_THAT(lines.all(), Contains("feed machine f0 has gone: it closed the connection"));
}

TEST_CASE("words of a machine cannot forge lines of the job", "[feed]") {
  Lines lines;
  FeedPort port(LoopbackListener(), PortOptions(lines));
  FeedChannel channel = Connect(port.address());
  std::string expected;
  SECTION("name") {
    channel.Send(FeedHello{"f0\ntroupe: all is well", "build 1", "data.seed = 1\n", 7, 2});
    expected = "its name has other characters than a host's";
  }
  SECTION("build") {
    channel.Send(FeedHello{"f0", "\ntroupe: \x1b[31mall is well" + std::string(5000, 'x'),
                           "data.seed = 1\n", 7, 2});
    expected = "it is built from ?troupe: ?[31mall";
  }
  CHECK(std::holds_alternative<FeedEnd>(*NextOf(channel)));
  CHECK_THAT(lines.all(), Contains(expected));
  CHECK(std::ranges::count(lines.all(), '\n') == 1);
  CHECK(lines.all().size() < 600);
}

TEST_CASE_METHOD(PortFixture, "a machine that does not keep to the protocol is dismissed",
                 "[feed]") {
  FeedChannel channel = Connect(port.address());
  const auto send_hello = [&] {
    channel.Send(FeedHello{"f0", "build 1", "data.seed = 1\n", 7, 1 << 30});
    CHECK(std::holds_alternative<FeedPlaces>(*NextOf(channel)));
    CHECK(taker.Use(0)->credits() == 4096);
  };
  const auto dismissal = [&] {
    const auto message = NextOf(channel);
    REQUIRE(message);
    return std::get<FeedEnd>(*message).problem.text;
  };
  SECTION("no Hello") {
    channel.Send(FeedBytes{});
    CHECK(dismissal() == "it sent another message before its Hello");
  }
  SECTION("two Hellos") {
    send_hello();
    channel.Send(FeedHello{"f0", "build 1", "data.seed = 1\n", 7, 1});
    CHECK(dismissal() == "it sent two Hellos");
  }
  SECTION("a sample that nobody asked for") {
    send_hello();
    channel.Send(FeedSample{.number = 0, .size = 1});
    CHECK(dismissal() == "it sent a sample that it was not asked for");
  }
  SECTION("a sample twice") {
    send_hello();
    taker.Ask(0, {.bytes = 1});
    std::get<FeedOrder>(*NextOf(channel));
    for (int i = 0; i < 2; ++i) channel.Send(FeedSample{.number = 0, .size = 0});
    CHECK(dismissal() == "it sent a sample that it was not asked for");
    CHECK(taker.AwaitSamples(1).size() == 1);
  }
  SECTION("a sample that is much too large") {
    send_hello();
    taker.Ask(0, {.bytes = 1000});
    std::get<FeedOrder>(*NextOf(channel));
    channel.Send(FeedSample{.number = 0, .size = std::int64_t{1} << 60});
    CHECK_THAT(dismissal(), Contains("expected at most 1052576"));
  }
  SECTION("more bytes than the sample has") {
    send_hello();
    taker.Ask(0, {.bytes = 1000});
    std::get<FeedOrder>(*NextOf(channel));
    channel.Send(FeedSample{.number = 0, .size = 10});
    channel.Send(FeedBytes{std::vector<std::byte>(11)});
    CHECK(dismissal() == "it sent more bytes than its sample has");
  }
  SECTION("a message of a job") {
    send_hello();
    channel.Send(FeedPlaces{});
    CHECK(dismissal() == "it sent a message that only a job sends");
  }
  CHECK_THAT(lines.all(), Contains("is not used: it sent"));
  port.End(DoneProblem());
}

TEST_CASE("messages survive their encoding, and no part of one passes for a message", "[feed]") {
  const std::vector<FeedMessage> messages = {
      FeedHello{"f1", "build", "a = b\n", 1234, 16},
      FeedPlaces{{{"n0", 7430}, {"fd00::1", 1}}},
      FeedOrder{5, 17, {false, 1'000'000'000'000, -1, 3, 77}},
      FeedSample{6, 123, 1, 2, 3, 4},
      FeedFailure{7, "row 3 is bad"},
      FeedEnd{{"the job is done", JoinFault::kDone}},
  };
  for (const FeedMessage& message : messages) {
    const auto bytes = FeedProtocol::Encode(message);
    CHECK(FeedProtocol::Encode(FeedProtocol::Decode(bytes)) == bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      CHECK_THROWS_AS(FeedProtocol::Decode(std::span(bytes).first(size)), WireError);
    }
    auto longer = bytes;
    longer.push_back({});
    CHECK_THROWS_AS(FeedProtocol::Decode(longer), WireError);
  }
  const auto order = std::get<FeedOrder>(FeedProtocol::Decode(FeedProtocol::Encode(messages[2])));
  CHECK(order.ticket.row == 1'000'000'000'000);
  CHECK(order.ticket.source == -1);
  CHECK_FALSE(order.ticket.train);
  const FeedBytes piece{{std::byte{1}, std::byte{2}}};
  CHECK(std::get<FeedBytes>(FeedProtocol::Decode(FeedProtocol::Encode(piece))).bytes ==
        piece.bytes);
}

}  // namespace troupe
