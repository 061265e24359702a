#include "cluster/join.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "cluster/dialer.hpp"
#include "cluster/join_channel.hpp"
#include "tests/cluster/connect.hpp"
#include "tests/cluster/meeting.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using std::chrono::steady_clock;
using testing::Again;
using testing::CheckMesh;
using testing::Meeting;
using testing::Outcome;

namespace {

Deadline Soon() { return steady_clock::now() + 5s; }

/// A proven connection to process 0, to misbehave on.
JoinChannel DialAs(const Meeting& meeting, ProcessId process) {
  Dialer dialer(meeting.key().Derive("join"), {meeting.seed(), Purpose::kJoin, process, 0, 0, {}});
  PollSet polls;
  while (dialer.status() == Dialer::Status::kTrying) {
    polls.Clear();
    dialer.AddTo(polls);
    polls.Wait(dialer.NextDeadline());
    dialer.Serve(polls, steady_clock::now());
  }
  REQUIRE(dialer.status() == Dialer::Status::kConnected);
  return JoinChannel(dialer.Take(), Side::kInitiator);
}

std::optional<JoinMessage> NextOf(JoinChannel& channel) {
  PollSet polls;
  const Deadline deadline = Soon();
  while (channel.open() && steady_clock::now() < deadline) {
    channel.Serve();
    if (auto message = channel.Next()) return message;
    if (!channel.open()) break;
    polls.Clear();
    polls.Add(channel.fd(), channel.events());
    polls.Wait(deadline);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a job of one process has met already") {
  Meeting meeting(1);
  JoinOptions options = meeting.Options(0);
  options.seed = {"no such host.", 1};
  const Joined joined = Join(meeting.key(), options);
  CHECK(joined.peers.empty());
  CHECK(joined.roster.members.size() == 1);
  CHECK(joined.roster.run_directory == "runs/x");
}

TEST_CASE("processes in any order meet, know each other and are connected twice per pair") {
  Meeting meeting(4);
  meeting.Start(0);
  for (const ProcessId process : {3, 1, 2}) meeting.Start(process);
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error.empty());
  std::vector<Outcome> by_process(4);
  by_process[0] = std::move(outcomes[0]);
  by_process[3] = std::move(outcomes[1]);
  by_process[1] = std::move(outcomes[2]);
  by_process[2] = std::move(outcomes[3]);
  std::set<std::uint64_t> nonces;
  for (const Outcome& outcome : by_process) {
    CHECK(outcome.joined->peers.size() == 3);
    const Roster& roster = outcome.joined->roster;
    nonces.insert(roster.nonce);
    CHECK(roster.run_directory == "runs/x");
    REQUIRE(roster.members.size() == 4);
    for (ProcessId process = 0; process < 4; ++process) {
      const Hello& member = roster.members[static_cast<std::size_t>(process)];
      CHECK(member.process == process);
      CHECK(member.name == "n" + std::to_string(process));
      CHECK(member.pid == 100 + process);
      CHECK(member.config == "a = 1\nb = 2\n");
      CHECK(member.address.host == "127.0.0.1");
      CHECK(member.address.port != 0);
      // After go, only process 0 listens, to answer latecomers.
      if (process != 0) CHECK_THROWS(testing::Connect(member.address, steady_clock::now() + 1ms));
    }
  }
  by_process[0].joined->latecomers.reset();
  CHECK_THROWS(testing::Connect(meeting.seed(), steady_clock::now() + 1ms));
  CHECK(nonces.size() == 1);
  CheckMesh(by_process);
}

TEST_CASE("pairs whose tensors need a connection get one, with a key that only they have") {
  Meeting meeting(3);
  const auto wants = [](JoinOptions& options) {
    options.self.host = options.self.process == 2 ? "boot=2" : "boot=1";
    options.tensors = [](const Hello& one, const Hello& other) { return one.host != other.host; };
  };
  for (const ProcessId process : {0, 1, 2}) meeting.Start(process, wants);
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error.empty());
  const auto session = [&](std::size_t of, std::size_t peer) {
    return outcomes[of].joined->peers[peer].tensors_session;
  };
  CHECK_FALSE(outcomes[0].joined->peers[0].tensors);
  CHECK_FALSE(outcomes[1].joined->peers[0].tensors);
  for (const std::size_t of : {0, 1}) CHECK(outcomes[of].joined->peers[1].tensors);
  CHECK(session(0, 1) == session(2, 0));
  CHECK(session(1, 1) == session(2, 1));
  CHECK_FALSE(session(2, 0) == session(2, 1));
  CheckMesh(outcomes);
}

TEST_CASE("a member may come before process 0") {
  const Address address = Socket::Listen({"127.0.0.1", 0}).local_address();
  Meeting meeting(2);
  meeting.Start(1, [&](JoinOptions& options) { options.seed = address; });
  meeting.Start(0, [&](JoinOptions& options) { options.seed = address; });
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
}

TEST_CASE("a missing process is named to all that are there") {
  Meeting meeting(4, 600ms);
  meeting.Start(0, [](JoinOptions& options) { options.names = {"n0", "n1", "n2", "n3.d1"}; });
  meeting.Start(1);
  for (const Outcome& outcome : meeting.Finish())
    CHECK(outcome.error ==
          "n2, n3.d1 did not join within 0.6 s (joined at " + ToString(meeting.seed()) + ": n1)");
}

TEST_CASE("a process 0 without members reports it, and so does a member that does not find it") {
  Meeting meeting(2, 300ms);
  meeting.Start(0);
  CHECK(meeting.Finish()[0].error ==
        "n1 did not join within 0.3 s (joined at " + ToString(meeting.seed()) + ": none)");
  Meeting other(2, 300ms);
  const Address address = Socket::Listen({"127.0.0.1", 0}).local_address();
  other.Start(1, [&](JoinOptions& options) { options.seed = address; });
  CHECK(other.Finish()[0].error == "cannot reach " + ToString(address) +
                                       " within 0.3 s: connection refused (is process 0 "
                                       "running, is the address right?)");
}

TEST_CASE("a member that waits where nothing listens says that process 0 may have ended") {
  const Address address = Socket::Listen({"127.0.0.1", 0}).local_address();
  Meeting meeting(2, 3s);
  meeting.Start(1, [&](JoinOptions& options) { options.seed = address; });
  CHECK_THAT(meeting.Finish()[0].error, Contains(" within 3 s: connection refused (is process 0 "));
  CHECK(meeting.said() ==
        std::vector<std::string>{"n1: waiting for n0 at " + ToString(address) +
                                 ": connection refused (not started yet, or it has ended: see its "
                                 "output), 2 of 3 s"});
}

TEST_CASE("a taken port is refused at once") {
  const Socket taken = Socket::Listen({"127.0.0.1", 0});
  Meeting meeting(2);
  JoinOptions options = meeting.Options(0);
  options.seed = taken.local_address();
  CHECK_THROWS_WITH(
      Join(meeting.key(), options),
      "cannot listen on " + ToString(taken.local_address()) + ": address already in use");
}

TEST_CASE("a process that differs is named to all, with the difference") {
  Meeting meeting(3);
  meeting.Start(0);
  meeting.Start(1);
  meeting.Start(2, [](JoinOptions& options) { options.self.config = "a = 1\nb = 3\n"; });
  for (const Outcome& outcome : meeting.Finish())
    CHECK(outcome.error ==
          "the configuration of n2 (127.0.0.1) differs from that of n0: b is 3, n0 has 2");
  Meeting builds(2);
  builds.Start(0);
  builds.Start(1, [](JoinOptions& options) { options.self.build = "0.2"; });
  for (const Outcome& outcome : builds.Finish())
    CHECK(outcome.error == "n1 (127.0.0.1) is built from 0.2, n0 from 0.1 abc");
}

TEST_CASE("a second process with the same number is refused, and the job goes on") {
  Meeting meeting(2);
  meeting.Start(0);
  meeting.Start(1);
  const auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error == "");
  Meeting too_many(2);
  too_many.Start(
      1,
      [&](JoinOptions& options) {
        options.seed = meeting.seed();
        options.self.pid = 7;
      },
      meeting.key());
  const std::string text =
      "n1 has already joined (127.0.0.1, pid 101): two processes were started as n1";
  CHECK(too_many.Finish()[0].error == text);
  CHECK(meeting.said() == std::vector<std::string>{
                              "n0: " + text + "; the second one (127.0.0.1, pid 7) was refused"});
}

TEST_CASE("a process of the next generation is sent away by the last one, not refused") {
  Meeting meeting(2);
  meeting.Start(0);
  meeting.Start(1);
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error == "");
  Meeting next(2);
  const auto again = [&](JoinOptions& options) {
    options.seed = meeting.seed();
    options.self.generation = 1;
  };
  next.Start(1, again, meeting.key());
  std::this_thread::sleep_for(400ms);  // it has been answered once
  outcomes.clear();
  next.Start(0, again, meeting.key());
  for (const Outcome& outcome : next.Finish()) {
    CHECK(outcome.error == "");
    CHECK(outcome.joined->roster.generation == 1);
  }
  CHECK(meeting.said().empty());
}

TEST_CASE("a process that takes a lost one's place comes again until the loss is noticed") {
  const auto lasting = [](JoinOptions& options) { options.lasting = true; };
  Meeting meeting(2);
  meeting.Start(0, lasting);
  meeting.Start(1, lasting);
  auto& outcomes = meeting.Finish();
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.error == "");
  Meeting next(2);
  const auto in_its_place = [&](JoinOptions& options) {
    options.seed = meeting.seed();
    options.self.pid = 7;
    options.lasting = true;
  };
  next.Start(1, in_its_place, meeting.key());
  std::this_thread::sleep_for(400ms);  // it has been answered once
  CHECK(meeting.said().empty());
  outcomes.clear();  // now process 0 knows
  next.Start(
      0,
      [&](JoinOptions& options) {
        in_its_place(options);
        options.self.generation = 1;
      },
      meeting.key());
  for (const Outcome& outcome : next.Finish()) {
    CHECK(outcome.error == "");
    CHECK(outcome.joined->roster.generation == 1);
  }
}

TEST_CASE("who has the key but has not said who it is learns nothing of the job") {
  Meeting meeting(2);
  meeting.Start(0);
  JoinChannel silent = DialAs(meeting, 1);
  meeting.Start(1);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
  CHECK_FALSE(NextOf(silent));
  CHECK_FALSE(silent.open());
}

TEST_CASE("a machine that is lost before it says who it is does not end a job that goes on") {
  Meeting meeting(3);
  meeting.Start(0, Again);
  {
    const JoinChannel lost = DialAs(meeting, 1);
    const JoinChannel came_again = DialAs(meeting, 2);
    meeting.Start(2, Again);
    std::this_thread::sleep_for(5200ms);  // then a Hello is late
  }
  meeting.Start(1, Again);
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
  std::vector<std::string> said = meeting.said();
  std::erase_if(said,
                [](const std::string& line) { return line.find(": waiting for ") != line.npos; });
  CHECK(said == std::vector<std::string>{
                    "n0: n1 (127.0.0.1): nothing it sends arrives here, though the run key was "
                    "proven: does the path drop large packets (MTU)?"});
}

TEST_CASE("a number that is taken twice is an error as long as another is missing") {
  Meeting meeting(3);
  meeting.Start(0);
  meeting.Start(1);
  meeting.Start(1, [](JoinOptions& options) { options.self.pid = 7; });
  for (const Outcome& outcome : meeting.Finish())
    CHECK_THAT(outcome.error, Contains("two processes joined as process 1: n1 (127.0.0.1, pid "));
}

TEST_CASE("another key is reported to its owner, and does not end the job") {
  Meeting meeting(2);
  meeting.Start(0);
  const auto stranger = meeting.Start(1, {}, RunKey::Generate());
  while (meeting.said().empty()) std::this_thread::sleep_for(1ms);
  meeting.Start(1);
  const auto& outcomes = meeting.Finish();
  CHECK(outcomes[0].error == "");
  CHECK(outcomes[stranger].error == ToString(meeting.seed()) + " does not have this run key");
  CHECK(meeting.said() ==
        std::vector<std::string>{"n0: refused a connection from 127.0.0.1: it could not prove the "
                                 "run key (further ones are only counted)"});
}

TEST_CASE("of two processes with one number, the one of an earlier generation is refused") {
  for (const bool earlier_first : {true, false}) {
    Meeting meeting(3);
    meeting.Start(0);
    const auto start = [&](std::int64_t generation) {
      const auto place = meeting.Start(1, [=](JoinOptions& options) {
        options.self.generation = generation;
        options.self.pid = 200 + generation;
      });
      std::this_thread::sleep_for(100ms);
      return place;
    };
    const auto one = start(earlier_first ? 1 : 2);
    const auto other = start(earlier_first ? 2 : 1);
    meeting.Start(2);
    const auto& outcomes = meeting.Finish();
    CHECK(outcomes[earlier_first ? one : other].error ==
          "n1 has already joined (127.0.0.1, pid 202): two processes were started as n1");
    CHECK(outcomes[earlier_first ? one : other].fault == JoinFault::kTaken);
    CHECK(outcomes[earlier_first ? other : one].error == "");
    CHECK(outcomes[0].joined->roster.generation == 2);
    CHECK(outcomes[0].joined->roster.members[1].pid == 202);
  }
}

TEST_CASE("a new run is not mixed with processes that go on with another") {
  Meeting meeting(3);
  meeting.Start(0, [](JoinOptions& options) { options.begins_anew = true; });
  meeting.Start(1, [](JoinOptions& options) { options.self.generation = 1; });
  meeting.Start(2, [](JoinOptions& options) { options.self.generation = 1; });
  for (const Outcome& outcome : meeting.Finish()) {
    CHECK_THAT(outcome.error, Contains("n1, n2 would go on with a run that has begun before, n0 "
                                       "begins a new one: start it with --resume"));
    CHECK(outcome.fault == JoinFault::kWrongFirst);
  }
}

TEST_CASE("a process that does not fit a job that goes on is refused alone") {
  Meeting meeting(3);
  meeting.Start(0, Again);
  meeting.Start(1, Again);
  const auto wrong = meeting.Start(2, [](JoinOptions& options) {
    options.lasting = true;
    options.self.config = "a = 2\nb = 2\n";
  });
  while (meeting.said().empty()) std::this_thread::sleep_for(1ms);
  const auto right = meeting.Start(2, [](JoinOptions& options) { options.lasting = true; });
  const auto& outcomes = meeting.Finish();
  const std::string cause =
      "the configuration of n2 (127.0.0.1) differs from that of n0: a is 2, n0 has 1";
  CHECK(outcomes[wrong].error == cause);
  CHECK(outcomes[wrong].fault == JoinFault::kOther);
  for (const std::size_t place : {std::size_t{0}, std::size_t{1}, right}) {
    CHECK(outcomes[place].error == "");
  }
  CHECK(meeting.said() == std::vector<std::string>{"n0: refused: " + cause});
}

TEST_CASE("a job that does not go on tells all that have come") {
  Meeting meeting(3);
  meeting.Start(0, [](JoinOptions& options) {
    options.refusal = {"the disk is gone", JoinFault::kEnded};
  });
  meeting.Start(1);
  for (const Outcome& outcome : meeting.Finish()) {
    CHECK(outcome.error == "the disk is gone");
    CHECK(outcome.fault == JoinFault::kEnded);
  }
}

TEST_CASE("a member that leaves while it waits is missing, and may come back") {
  Meeting meeting(3);
  meeting.Start(0);
  {
    JoinChannel gone = DialAs(meeting, 1);
    gone.Send(meeting.Options(1).self);
    gone.Serve();
  }
  meeting.Start(2);
  meeting.Start(1, [](JoinOptions& options) { options.self.pid = 7; });
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == "");
}

TEST_CASE("a member that leaves after the roster ends the job for all, by its name") {
  Meeting meeting(3);
  meeting.Start(0);
  meeting.Start(1);
  JoinChannel member = DialAs(meeting, 2);
  Hello hello = meeting.Options(2).self;
  hello.address = {"127.0.0.1", 1};
  member.Send(hello);
  REQUIRE(std::holds_alternative<Roster>(NextOf(member).value()));
  member = JoinChannel({Socket(), meeting.key()}, Side::kInitiator);
  for (const Outcome& outcome : meeting.Finish()) {
    CHECK(outcome.error == "n2 left while the job was meeting: it closed the connection");
    CHECK(outcome.fault == JoinFault::kLeft);
  }
}

TEST_CASE("a pair that cannot be connected is named to all") {
  Meeting meeting(3, 500ms);
  const Address nobody = Socket::Listen({"127.0.0.1", 0}).local_address();
  meeting.Start(0);
  // Process 1 is at an address without a listener.
  JoinChannel member = DialAs(meeting, 1);
  Hello hello = meeting.Options(1).self;
  hello.address = nobody;
  member.Send(hello);
  meeting.Start(2);
  REQUIRE(std::holds_alternative<Roster>(NextOf(member).value()));
  const auto refusal = NextOf(member);
  member = JoinChannel({Socket(), meeting.key()}, Side::kInitiator);
  REQUIRE(refusal);
  const std::string text = std::get<Refusal>(*refusal).problem.text;
  CHECK(text == "n2 cannot reach n1 at " + ToString(nobody) + " within 0.5 s: connection refused");
  for (const Outcome& outcome : meeting.Finish()) CHECK(outcome.error == text);
}

TEST_CASE("a member whose process 0 goes away while it waits says so") {
  Socket listener = Socket::Listen({"127.0.0.1", 0});
  Meeting meeting(2, 700ms);
  meeting.Start(1, [&](JoinOptions& options) { options.seed = listener.local_address(); });
  { const Socket accepted = testing::Accept(listener, Soon()); }
  const Address address = listener.local_address();
  listener = Socket();
  CHECK_THAT(meeting.Finish()[0].error,
             Contains("cannot reach " + ToString(address) + " within 0.7 s"));
}

TEST_CASE("another wire version is refused with both numbers, to all") {
  Meeting meeting(2);
  meeting.Start(0);
  Opening opening;
  opening.version = 9;
  opening.from = 1;
  FillRandom(opening.nonce);
  Handshake handshake = Handshake::Initiate(meeting.key().Derive("join"), opening);
  Socket socket = testing::Connect(meeting.seed(), Soon());
  while (handshake.status() == Handshake::Status::kRunning) {
    socket.Write(handshake.TakeOutput(), Soon());
    std::vector<std::byte> bytes(handshake.wanted());
    socket.Read(bytes, Soon());
    handshake.Receive(bytes);
  }
  CHECK(handshake.status() == Handshake::Status::kVersion);
  CHECK(meeting.Finish()[0].error == handshake.problem());
  CHECK_THAT(handshake.problem(), Contains("process 1 speaks wire version 9, process 0"));
}
