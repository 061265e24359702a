// One node: the test plays the nodes of the other processes, and the process of this one. The actors
// that the node makes are the product's.
#include "actors/node_actor.hpp"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/actors/job_fixture.hpp"
#include "tests/actors/probes.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

/// A language model of three stages on ranks 0, 1 and 2, in processes n0, n1 and n2.
class NodeFixture : public ActorFixture {
 public:
  NodeFixture() {
    Layout layout;
    layout.pp = 3;
    Use(SyntheticConfigOf({{"language", layout}}, {}), 3);
    config.tensors = std::make_shared<TensorStore>(abort);
    config.abort = abort;
    config.actors = std::make_shared<ActivityTable>();
    config.observer = seen;
    config.rounds = TrainingRounds(0, 1);
    config.threads = false;
    config.ending = [this] { ++times_ending; };
  }
  void Use(const Config& job, int processes) {
    config.plan = std::make_shared<const JobPlan>(job);
    config.processes =
        std::make_shared<const ProcessPlan>(ProcessPlan::Local(job.cluster, processes));
    config.make_program = MakeSyntheticPrograms(job);
    config.source = std::make_shared<SyntheticSource>(job);
  }
  /// The node of process `self`, which knows all others.
  void Open(ProcessId self) {
    config.self = self;
    node = Spawn(RunNode, config);
    for (const PlannedProcess& process : config.processes->processes()) {
      if (process.process == self) continue;
      others[process.process] = &AddProbe(process.name);
      Introduce(process.process);
    }
  }
  std::shared_ptr<Answered<troupe::Introduce>> Introduce(ProcessId process) {
    const auto address = std::vector<std::byte>{std::byte(10 + process)};
    return Ask<troupe::Introduce>(
        node, troupe::Introduce{process, others.at(process)->actor(), address, true});
  }
  void Start() { done = Ask<JobDone>(node, RunJob{}); }
  /// Makes the update of stage `index`.
  Update MakeUpdate(int index) {
    const auto spawned = Ask<Spawned>(node, SpawnUpdate{index, devices.As<LockStep>()});
    Keep(spawned->answers.at(0).actor);
    return caf::actor_cast<Update>(spawned->answers[0].actor);
  }
  /// By name: the actors that live, and those that have ended.
  std::vector<std::string> Actors(bool ended) const {
    std::vector<std::string> names;
    for (const ActivityTable::Entry& entry : config.actors->List()) {
      if (entry.activity->ended == ended) names.push_back(entry.name);
    }
    return names;
  }

  using Names = std::vector<std::string>;
  NodeConfig config;
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  std::map<ProcessId, Probe*> others;
  Probe& devices = AddProbe("devices");
  Node node;
  std::shared_ptr<Answered<JobDone>> done;
  int times_ending = 0;
};

}  // namespace

TEST_CASE_METHOD(NodeFixture, "nodes are known when all have introduced themselves",
                 "[actors][node]") {
  config.self = 1;
  config.tensor_address = {std::byte(11)};
  node = Spawn(RunNode, config);
  for (const ProcessId other : {0, 2}) others[other] = &AddProbe("n" + std::to_string(other));
  const auto known = Ask<NodesKnown>(node, AwaitNodes{});
  const auto back = Introduce(2);
  CHECK(back->answers.at(0).process == 1);
  CHECK(back->answers[0].tensor_address == std::vector<std::byte>{std::byte(11)});
  CHECK(known->pending());
  Introduce(0);
  const auto& addresses = known->answers.at(0).tensor_addresses;
  CHECK(addresses.at(0) == std::vector<std::byte>{std::byte(10)});
  CHECK(addresses.at(2) == std::vector<std::byte>{std::byte(12)});
}

TEST_CASE_METHOD(NodeFixture, "a node introduces itself, and waits no longer than the job lives",
                 "[actors][node]") {
  config.self = 1;
  node = Spawn(RunNode, config);
  for (const ProcessId other : {0, 2}) others[other] = &AddProbe("n" + std::to_string(other));
  const bool answered = GENERATE(false, true);
  const auto known = Ask<NodesKnown>(node, AwaitNodes{{others.at(0)->actor()}, false});
  CHECK(others.at(0)->Oldest<troupe::Introduce>().process == 1);
  CHECK_FALSE(others.at(0)->Oldest<troupe::Introduce>().sees_run_directory);
  if (answered) {
    Give<troupe::Introduce>(*others.at(0), troupe::Introduce{0, others.at(0)->actor(), {}, true});
  }
  CHECK(known->pending());
  abort->Raise({"lost n2", FailureKind::kLost});
  Deliver();
  CHECK(known->errors == std::vector<std::string>{"lost n2"});
}

TEST_CASE_METHOD(NodeFixture, "devices are made when their own process is ready to run",
                 "[actors][node]") {
  Open(1);
  const auto made = Ask<DevicesSpawned>(node, SpawnDevices{});
  CHECK(made->pending());
  Start();
  REQUIRE(made->answers.size() == 1);
  CHECK(made->answers[0].devices.size() == 1);
  CHECK(made->answers[0].devices.contains(1));
  CHECK(Actors(false) == Names{"device 1"});
  CHECK(done->pending());
}

TEST_CASE_METHOD(NodeFixture, "an actor that ends unexpectedly fails the job by name",
                 "[actors][node]") {
  Open(1);
  Start();
  const Update update = MakeUpdate(1);
  caf::anon_send_exit(update, caf::exit_reason::kill);
  Deliver();
  CHECK_THAT(abort->cause(), Catch::StartsWith("update of language.s1 ended unexpectedly: "));
  CHECK(abort->failure().actors == Names{"update of language.s1"});
  CHECK(others[0]->Oldest<JobFailed>().failure == abort->failure());
  CHECK(others[2]->Oldest<JobFailed>().failure == abort->failure());
}

TEST_CASE_METHOD(NodeFixture, "the first failure goes to all other nodes, a later one to none",
                 "[actors][node]") {
  Open(1);
  Start();
  Send(node, JobFailed{{"the first", FailureKind::kLost}});
  Send(node, JobFailed{{"the second"}});
  abort->Raise("the third");
  Deliver();
  for (const ProcessId other : {0, 2}) {
    REQUIRE(others[other]->Count<JobFailed>() == 1);
    CHECK(others[other]->Oldest<JobFailed>().failure == Failure("the first", FailureKind::kLost));
  }
  CHECK(done->pending());  // process 0 ends the job
  Ask<ActorsEnded>(node, EndActors{{"what process 0 heard of"}});
  CHECK(done->answers.at(0).failure == Failure("the first", FailureKind::kLost));
}

TEST_CASE_METHOD(NodeFixture, "a node that is asked to end ends all of its actors",
                 "[actors][node]") {
  Open(1);
  Start();
  const Update update = MakeUpdate(1);
  MakeUpdate(0);
  Ask<DevicesSpawned>(node, SpawnDevices{});
  CHECK(Actors(false) == Names{"update of language.s1", "update of language.s0", "device 1"});
  const auto ended = Ask<ActorsEnded>(node, EndActors{});
  CHECK(ended->answers.size() == 1);
  CHECK(Actors(false).empty());
  CHECK(Actors(true).size() == 3);
  CHECK(done->answers.at(0).failure.empty());
  CHECK_FALSE(abort->raised());  // it was asked for
  // An actor that is made too late ends at once.
  CHECK(Ask<Updated>(MakeUpdate(2), BackwardsDone{})->errors.size() == 1);
}

TEST_CASE_METHOD(NodeFixture, "process 0 ends a failed job everywhere, its own actors last",
                 "[actors][node]") {
  Open(0);
  Start();
  CHECK(Actors(false) == Names{"device 0"});
  CHECK(others[1]->Count<SpawnDevices>() == 1);  // the job is still being built
  Send(node, JobFailed{{"n1 has no device", FailureKind::kError}});
  CHECK(others[1]->Oldest<EndActors>().failure == Failure("n1 has no device"));
  Give<EndActors>(*others[2], ActorsEnded{});
  CHECK(Actors(false) == Names{"device 0"});
  CHECK(done->pending());
  Give<EndActors>(*others[1], ActorsEnded{});
  CHECK(Actors(false).empty());
  CHECK(done->answers.at(0).failure == Failure("n1 has no device"));
  CHECK(times_ending == 1);
}

TEST_CASE_METHOD(NodeFixture, "a process that does not answer in time is not waited for",
                 "[actors][node]") {
  SECTION("another one") {
    Open(0);
    Start();
    Send(node, JobFailed{{"it broke"}});
    Give<EndActors>(*others[2], ActorsEnded{});
  }
  SECTION("process 0") {
    Open(1);
    Start();
    MakeUpdate(1);
    Send(node, JobFailed{{"it broke"}});
  }
  CHECK(done->pending());
  Advance(std::chrono::nanoseconds(config.patience).count());
  CHECK(done->answers.at(0).failure == Failure("it broke"));
  CHECK(Actors(false).empty());
}

TEST_CASE_METHOD(NodeFixture, "nothing is asked of a process that is lost", "[actors][node]") {
  Open(1);
  Start();
  SECTION("not process 0") {
    Send(node, PeerLost{2});
    Send(node, JobFailed{{"n2 is lost", FailureKind::kLost}});
    CHECK(others[2]->Count<JobFailed>() == 0);
    CHECK(others[0]->Count<JobFailed>() == 1);
    CHECK(done->pending());
  }
  SECTION("process 0: then every node ends its own actors") {
    MakeUpdate(1);
    Send(node, PeerLost{0});
    Send(node, JobFailed{{"n0 is lost", FailureKind::kLost}});
    CHECK(others[0]->Count<JobFailed>() == 0);
    CHECK(done->answers.at(0).failure == Failure("n0 is lost", FailureKind::kLost));
    CHECK(Actors(false).empty());
  }
}

TEST_CASE_METHOD(NodeFixture, "a request to stop early goes to the director, by way of process 0",
                 "[actors][node]") {
  SECTION("from another process") {
    Open(1);
    Send(node, StopSoon{});
    CHECK(others[0]->Count<StopSoon>() == 1);
    CHECK(others[2]->Count<StopSoon>() == 0);
  }
  SECTION("before there is a director") {
    Use(SyntheticConfigOf({{"language", Layout()}}, {}), 1);
    config.rounds = TrainingRounds(5, 1);
    Open(0);
    Send(node, StopSoon{});
    Start();
    CHECK(done->answers.at(0).failure.empty());
    CHECK(seen->rounds.empty());
  }
}

TEST_CASE_METHOD(NodeFixture, "a job that succeeds ends all of its actors", "[actors][node]") {
  Use(SyntheticConfigOf({{"language", Layout()}}, {}), 1);
  config.rounds = TrainingRounds(2, 1);
  Open(0);
  Start();
  CHECK(done->answers.at(0).failure.empty());
  CHECK(seen->rounds.size() == 2);
  CHECK(Actors(false).empty());
  CHECK(Actors(true) == Names{"device 0", "lock step 0", "update of language.s0",
                              "stage language.s0 dp0", "feed of language dp0", "director"});
  CHECK(times_ending == 1);
}

TEST_CASE_METHOD(NodeFixture, "the waits of a process name its actors, and what each waits for",
                 "[actors][node]") {
  Open(1);
  Start();
  Ask<Updated>(MakeUpdate(1), BackwardsDone{4, 1, 0});
  const auto reported = Ask<Waits>(node, ReportWaits{});
  const auto& actors = reported->answers.at(0).actors;
  REQUIRE(actors.size() == 1);
  CHECK(actors[0].who == "update of language.s1");
  CHECK(actors[0].node == "n1");
  REQUIRE(actors[0].waits.size() == 1);
  CHECK(actors[0].waits[0].what == "beginning of the update");
  CHECK(actors[0].waits[0].number == 4);
  CHECK(actors[0].waits[0].whom == "director");
  CHECK(actors[0].owes.size() == 1);
}

TEST_CASE_METHOD(NodeFixture, "a node reads files of checkpoints for others, and no other files",
                 "[actors][node]") {
  const ScratchFolder folder;
  const std::string checkpoint = folder / "run/checkpoints/step-00000002";
  std::filesystem::create_directories(checkpoint);
  std::string text(kMostOfFile + 3, 'x');
  text += "end";
  std::ofstream(checkpoint + "/a.safetensors") << text;
  std::ofstream(folder / "run/secret") << "secret";
  config.disk = "n1";
  config.storage.publish = [&](const PublishManifest& manifest, const std::string& disk) {
    CHECK(disk == "n1");
    if (manifest.text == "bad") throw std::runtime_error("the disk is full");
    std::ofstream(manifest.folder + "/manifest.json") << manifest.text;
  };
  Open(1);
  const auto found = Ask<FileFound>(node, FindFile{checkpoint + "/a.safetensors"});
  REQUIRE(found->answers.size() == 1);
  CHECK(found->answers[0].found);
  CHECK(found->answers[0].bytes == text.size());
  const auto missing = Ask<FileFound>(node, FindFile{checkpoint + "/b.safetensors"});
  CHECK_FALSE(missing->answers.at(0).found);
  const auto end = Ask<FileRead>(node, ReadFile{checkpoint + "/a.safetensors", kMostOfFile + 3, 3});
  REQUIRE(end->answers.at(0).bytes.size() == 3);
  CHECK(end->answers[0].bytes[1] == std::byte('n'));
  const auto most = Ask<FileRead>(node, ReadFile{checkpoint + "/a.safetensors", 0, 1ULL << 40});
  CHECK(most->answers.at(0).bytes.size() == kMostOfFile);
  for (const std::string& path : {folder / "run/secret", checkpoint + "/../../secret",
                                  std::string("checkpoints/a/b"), std::string("/etc/passwd")}) {
    const auto hidden = Ask<FileFound>(node, FindFile{path});
    REQUIRE(hidden->answers.size() == 1);
    CHECK_FALSE(hidden->answers[0].found);
    const auto refused = Ask<FileRead>(node, ReadFile{path, 0, 1});
    REQUIRE(refused->errors.size() == 1);
    CHECK_THAT(refused->errors[0], Catch::EndsWith(": not a file of a checkpoint"));
  }
  const auto published = Ask<ManifestPublished>(node, PublishManifest{checkpoint, "good", {}});
  CHECK(published->answers.size() == 1);
  CHECK(std::filesystem::file_size(checkpoint + "/manifest.json") == 4);
  const auto failed = Ask<ManifestPublished>(node, PublishManifest{checkpoint, "bad", {}});
  CHECK(failed->errors == std::vector<std::string>{"the disk is full"});
}

TEST_CASE_METHOD(NodeFixture,
                 "a node fetches mirrors from another, and gives the files it is asked for",
                 "[actors][node]") {
  config.held = std::make_shared<HeldFiles>();
  Open(1);
  const auto bytes_of = [](const std::string& text) {
    Buffer bytes = Buffer::AllocateBytes(text.size());
    std::copy(text.begin(), text.end(), bytes.as<char>());
    return bytes;
  };
  config.held->Put("/run/memory/a", {"own", bytes_of("own bytes")});
  const auto mirror = Ask<MirrorHeld>(node, HoldMirror{"/run/memory/a", 2, {"one", "two"}});
  CHECK(mirror->pending());
  CHECK(others.at(2)->Oldest<GiveFiles>().folder == "/run/memory/a");
  CHECK(others.at(2)->Oldest<GiveFiles>().to == 1);
  CHECK(others.at(2)->Oldest<GiveFiles>().files == std::vector<std::string>{"one", "two"});
  const FilesGiven given{{{"one", bytes_of("1")}, {"two", bytes_of("22")}}};
  Give<GiveFiles>(*others.at(2), given);
  CHECK(mirror->answers.size() == 1);
  const auto own = Ask<FilesGiven>(node, GiveFiles{"/run/memory/a", 0, {"own"}});
  REQUIRE(own->answers.at(0).files.size() == 1);
  CHECK(own->answers[0].files[0].name == "own");
  const auto unknown = Ask<FilesGiven>(node, GiveFiles{"/run/memory/a", 0, {"own", "four"}});
  CHECK(unknown->errors ==
        std::vector<std::string>{"/run/memory/a/four: not held by this process"});
  for (const std::string name : {"own", "one", "two"}) {
    CHECK(Ask<FileFound>(node, FindFile{"/run/memory/a/" + name})->answers.at(0).found);
  }
  const auto read = Ask<FileRead>(node, ReadFile{"/run/memory/a/two", 1, 1});
  CHECK(read->answers.at(0).bytes == std::vector<std::byte>{std::byte('2')});
  CHECK_FALSE(Ask<FileFound>(node, FindFile{"/run/memory/a/x"})->answers.at(0).found);
  Ask<HeldCompleted>(node, CompleteHeld{"/run/memory/a", "{}"});
  CHECK(config.held->Checkpoints().at(0).manifest == "{}");
}

TEST_CASE_METHOD(NodeFixture, "a mirror of a lost process does not come", "[actors][node]") {
  config.held = std::make_shared<HeldFiles>();
  Open(1);
  Send(node, PeerLost{2});
  const auto lost = Ask<MirrorHeld>(node, HoldMirror{"/run/memory/a", 2, {"one"}});
  CHECK(lost->errors.size() == 1);
  const auto refused = Ask<MirrorHeld>(node, HoldMirror{"/run/memory/a", 0, {"one"}});
  Refuse<GiveFiles>(*others.at(0), "no memory is left");
  CHECK(refused->errors == std::vector<std::string>{"no memory is left"});
}

TEST_CASE_METHOD(NodeFixture, "a slow process leaves when process 0 says so", "[actors][node]") {
  int left = 0;
  config.leave = [&] { ++left; };
  SECTION("process 0 forwards it") {
    Open(0);
    Send(node, LeaveJob{2});
    CHECK(others.at(2)->Oldest<LeaveJob>().process == 2);
    CHECK(others.at(1)->Count<LeaveJob>() == 0);
    CHECK(left == 0);
    Send(node, PeerLost{1});
    Send(node, LeaveJob{1});
    CHECK(others.at(1)->Count<LeaveJob>() == 0);
  }
  SECTION("the other one ends, unless the job is ending anyway") {
    Open(1);
    Send(node, LeaveJob{1});
    CHECK(left == 1);
    Send(node, JobFailed{{"n2 is lost", FailureKind::kLost}});
    Send(node, LeaveJob{1});
    CHECK(left == 1);
  }
}

}  // namespace troupe
