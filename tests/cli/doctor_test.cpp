// The doctor's verdicts on made-up machines, and the program on real ones with one thing wrong.
#include <algorithm>
#include <filesystem>
#include <future>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "cli/doctor/checks.hpp"
#include "cli/doctor/shared.hpp"
#include "cluster/run_key.hpp"
#include "cluster/socket.hpp"
#include "modules/device/backend.hpp"
#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Catch::Contains;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

NodeFacts Node(const std::string& name, const std::string& resolved,
               const std::string& interface = "") {
  return {name, name + ".lan", resolved, "", interface, 1500};
}

Verdict WorstOf(const Findings& findings) {
  Verdict worst = Verdict::kOk;
  for (const Finding& finding : findings) worst = std::max(worst, finding.verdict);
  return worst;
}

/// The doctor on configs/shapes.toml.
Outcome Examine(std::vector<std::string> more) {
  more.insert(more.begin(), {"doctor", kShapes});
  Outcome outcome = RunTroupe(more);
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  return outcome;
}

/// A key file of its own, and what makes two nodes of configs/shapes.toml that have all they need.
class TwoNodes {
 public:
  TwoNodes() { RunKey::Generate().WriteFile(key()); }
  std::string key() const { return folder_ / "key"; }
  const ScratchFolder& folder() const { return folder_; }
  /// `number`: "0/2"; empty: unknown.
  std::vector<std::string> Arguments(const std::string& number,
                                     const std::string& join = "127.0.0.1:7420") const {
    std::vector<std::string> words = {"--set", "cluster.nodes=2", "--key-file", key()};
    if (!number.empty()) words.insert(words.end(), {"--node", number});
    if (!join.empty()) words.insert(words.end(), {"--set", "cluster.join=" + join});
    return words;
  }

 private:
  ScratchFolder folder_;
};

/// The first line of the table that begins with these words, and the advice below it.
std::string LineOf(const Outcome& outcome, const std::string& verdict, const std::string& name) {
  const std::vector<std::string> lines = LinesOf(outcome.out);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rfind(verdict + " ", 0) != 0) continue;
    if (lines[i].find(" " + name + " ") == std::string::npos) continue;
    return lines[i] + (i + 1 < lines.size() ? "\n" + lines[i + 1] : "");
  }
  return "";
}

/// It found exactly one failure: of this kind, with these words.
void RequireOnlyFailure(const Outcome& outcome, const std::string& name, const std::string& words) {
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 4);
  std::vector<std::string> failures;
  for (const std::string& line : LinesOf(outcome.out)) {
    if (line.rfind("failure ", 0) == 0) failures.push_back(line);
  }
  REQUIRE(failures.size() == 1);
  CHECK_THAT(failures.front(), Contains(" " + name + " ") && Contains(words));
  CHECK_THAT(LinesOf(outcome.out).back(), Contains("the job would fail"));
}

}  // namespace

TEST_CASE("failures stand last in the table, each with its advice below", "[cli][doctor]") {
  const Findings findings = {Fails("ports", "7420 is taken", "choose another"),
                             Well("clock", "synchronised"),
                             Warns("cores", "8 ranks on 2 cores", "it works")};
  CHECK(FindingsTable(findings) ==
        "ok       clock  synchronised\n"
        "warning  cores  8 ranks on 2 cores\n"
        "                -> it works\n"
        "failure  ports  7420 is taken\n"
        "                -> choose another\n"
        "the job would fail: 1 ok, 1 warning, 1 failure\n");
  CHECK(AnyFailure(findings));
  CHECK(!AnyFailure({findings[1], findings[2]}));
}

TEST_CASE("a disk without room for the checkpoints that are kept is a failure", "[cli][doctor]") {
  const DiskNeed need{kGiB, kGiB, 2};
  CHECK(CheckDisk("runs", 3 * kGiB, need).verdict == Verdict::kOk);
  const Finding full = CheckDisk("runs", 3 * kGiB - 1, need);
  CHECK(full.verdict == Verdict::kFailure);
  CHECK_THAT(full.line, Contains("weights and 2 checkpoints take 3.00 GiB"));
}

TEST_CASE("memory is measured against the machine and the control group, whichever is less",
          "[cli][doctor]") {
  CHECK(CheckMemory(kGiB, 1, {8 * kGiB, std::nullopt}).verdict == Verdict::kOk);
  CHECK(CheckMemory(9 * kGiB, 1, {8 * kGiB, std::nullopt}).verdict == Verdict::kFailure);
  const Finding grouped = CheckMemory(4 * kGiB, 1, {8 * kGiB, 2 * kGiB});
  CHECK(grouped.verdict == Verdict::kFailure);
  CHECK_THAT(grouped.line, Contains("2.00 GiB left to the control group's limit"));
  // What a process takes itself counts, and close to the edge is a warning.
  CHECK(CheckMemory(0, 64, {8 * kGiB, std::nullopt}).verdict == Verdict::kFailure);
  CHECK(CheckMemory(15 * kGiB / 2 - kGiB / 4, 1, {8 * kGiB, {}}).verdict == Verdict::kWarning);
}

TEST_CASE("ranks that share cores are a warning", "[cli][doctor]") {
  CHECK(CheckCores(4, 4).verdict == Verdict::kOk);
  CHECK(CheckCores(5, 4).verdict == Verdict::kWarning);
}

TEST_CASE("every other process costs open files", "[cli][doctor]") {
  CHECK(CheckDescriptors(1024, 100).verdict == Verdict::kOk);
  const Finding few = CheckDescriptors(256, 100);
  CHECK(few.verdict == Verdict::kFailure);
  CHECK_THAT(few.advice, Contains("ulimit -n "));
}

TEST_CASE("shared memory must hold a worker of every process here", "[cli][doctor]") {
  CHECK(CheckSharedMemory(64'000'000, 14).verdict == Verdict::kOk);
  CHECK(CheckSharedMemory(64'000'000, 15).verdict == Verdict::kFailure);
  CHECK(CheckSharedMemory(std::nullopt, 1).verdict == Verdict::kFailure);
}

TEST_CASE("processes that may not read each other are a warning", "[cli][doctor]") {
  CHECK(CheckCma(std::nullopt, "", false).verdict == Verdict::kOk);
  CHECK(CheckCma(1, "", false).verdict == Verdict::kOk);
  CHECK(CheckCma(2, "", true).verdict == Verdict::kOk);
  CHECK(CheckCma(2, "", false).verdict == Verdict::kWarning);
  CHECK(CheckCma(3, "", true).verdict == Verdict::kWarning);
  CHECK(CheckCma(0, "operation not permitted", true).verdict == Verdict::kWarning);
}

TEST_CASE("a clock that is not synchronised, or does not say, is a warning", "[cli][doctor]") {
  CHECK(CheckClock({true, ""}).verdict == Verdict::kOk);
  CHECK(CheckClock({false, ""}).verdict == Verdict::kWarning);
  CHECK_THAT(CheckClock({false, "not permitted"}).line, Contains("not permitted"));
}

TEST_CASE("names that do not resolve are failures, each by its own", "[cli][doctor]") {
  NodeFacts lost = Node("n1", "");
  lost.error = "Name or service not known";
  const Findings findings = CheckNames({Node("n0", "10.0.0.1", "eth0"), lost}, 0);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].verdict == Verdict::kFailure);
  CHECK(findings[0].line == "n1: Name or service not known");
  CHECK(findings[1].line == "n0 is 10.0.0.1 (here, eth0, MTU 1500)");
}

TEST_CASE("a machine without the address of its node is reported", "[cli][doctor]") {
  const std::vector<NodeFacts> nodes = {Node("n0", "10.0.0.1", "eth0"), Node("n1", "10.0.0.2")};
  CHECK(WorstOf(CheckNames(nodes, 0)) == Verdict::kOk);
  CHECK(WorstOf(CheckNames(nodes, std::nullopt)) == Verdict::kOk);
  CHECK(WorstOf(CheckNames(nodes, 1)) == Verdict::kFailure);
}

TEST_CASE("a node behind the loopback address cannot be reached by others", "[cli][doctor]") {
  const NodeFacts hidden = Node("n0", "127.0.1.1", "lo");
  CHECK(WorstOf(CheckNames({hidden, Node("n1", "10.0.0.2")}, 0)) == Verdict::kFailure);
  CHECK(WorstOf(CheckNames({hidden, Node("n1", "127.0.0.1", "lo")}, 0)) == Verdict::kOk);
}

TEST_CASE("nodes without addresses are left to the launcher", "[cli][doctor]") {
  NodeFacts unnamed;
  unnamed.name = "n0";
  const Findings findings = CheckNames({unnamed, unnamed}, 0);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == Verdict::kOk);
}

TEST_CASE("a port range needs a free port for each process", "[cli][doctor]") {
  CHECK(CheckPortRange("7500-7501", 2, 2).verdict == Verdict::kOk);
  CHECK(CheckPortRange("7500-7501", 1, 2).verdict == Verdict::kFailure);
}

TEST_CASE("a path is judged by what its silence would look like", "[cli][doctor]") {
  PathFacts path{"n1", 2e-4, 1e-4, 0.0, 1500, 1500};
  CHECK(CheckPath(path, 1.0).verdict == Verdict::kOk);
  path.mtu_back = 9000;
  CHECK(CheckPath(path, 1.0).verdict == Verdict::kWarning);
  path.round_trip_s = 0.3;
  CHECK_THAT(CheckPath(path, 1.0).advice, Contains("suspect_after_s"));
  path.round_trip_s = 1.1;
  CHECK(CheckPath(path, 1.0).verdict == Verdict::kFailure);
}

TEST_CASE("clocks more than a second apart are a warning, whichever is ahead", "[cli][doctor]") {
  PathFacts path{"n1", 2e-4, 1e-4, 0.5, 0, 0};
  CHECK(CheckClockDifference(path).line == "n1's clock is 500 ms ahead, known to 50.0 us");
  path.clock_ahead_s = -90.0;
  const Finding behind = CheckClockDifference(path);
  CHECK(behind.verdict == Verdict::kWarning);
  CHECK_THAT(behind.line, Contains("90.0 s behind"));
}

TEST_CASE("a transfer is judged by its slower direction and by what arrived", "[cli][doctor]") {
  TransferFacts facts{"n1", 64 << 20, 0.064, 0.032, true, ""};
  CHECK(CheckTransfer(facts).line ==
        "64.0 MiB to n1 in 64.0 ms (1.0 GB/s), back in 32.0 ms (2.1 GB/s)");
  facts.back_s = 5.0;
  CHECK(CheckTransfer(facts).verdict == Verdict::kWarning);
  facts.intact = false;
  CHECK(CheckTransfer(facts).verdict == Verdict::kFailure);
}

TEST_CASE("the advice about a slow transfer fits what it went over", "[cli][doctor]") {
  TransferFacts facts{"n1", 64 << 20, 2.0, 2.0, true, "tcp/eth0"};
  CHECK_THAT(CheckTransfer(facts).advice, Contains("is tcp/eth0 the right interface"));
  for (const char* here : {"sysv + cma", "tcp/lo"}) {
    facts.transport = here;
    CHECK_THAT(CheckTransfer(facts).advice,
               Contains(here) && Contains("processors") && !Contains("interface"));
  }
}

TEST_CASE("the advice about a meeting that failed fits its cause, or there is none",
          "[cli][doctor]") {
  const auto advice = [](JoinFault fault) { return CheckMeeting({"text", fault}).advice; };
  CHECK(CheckMeeting({"text", JoinFault::kOther}).line == "text");
  CHECK(advice(JoinFault::kOther).empty());
  CHECK_THAT(advice(JoinFault::kRunKey), Contains("the same key file"));
  CHECK_THAT(advice(JoinFault::kBuild), Contains("the same build"));
  CHECK_THAT(advice(JoinFault::kListen), Contains("a free port"));
  CHECK_THAT(advice(JoinFault::kAbsent), Contains("on every node within cluster.join_timeout_s"));
  CHECK_THAT(advice(JoinFault::kUnreachable), Contains("firewall"));
  CHECK_THAT(advice(JoinFault::kUnreached), Contains("firewall"));
}

TEST_CASE("a run directory of its own is a warning", "[cli][doctor]") {
  CHECK(CheckSharedDirectory("n1", "runs", "").verdict == Verdict::kOk);
  CHECK(CheckSharedDirectory("n1", "runs", "not there").verdict == Verdict::kWarning);
}

TEST_CASE("a token is seen in a shared directory only, and leaves nothing behind",
          "[cli][doctor]") {
  const ScratchFolder folder;
  {
    const SharedToken token(folder / "a/b", ".doctor-1");
    CHECK(LookForToken(folder / "a/b", ".doctor-1", "p1") == "");
    CHECK(std::filesystem::exists(folder / "a/b/.doctor-1/p1"));
    CHECK_THAT(LookForToken(folder / "elsewhere", ".doctor-1", "p1"), Contains("is missing"));
  }
  CHECK(!std::filesystem::exists(folder / "a"));
  std::filesystem::create_directory(folder / "kept");
  { const SharedToken token(folder / "kept", ".doctor-1"); }
  CHECK(std::filesystem::is_empty(folder / "kept"));
}

TEST_CASE("the doctor finds nothing wrong where a configuration runs, and leaves nothing behind",
          "[cli][doctor]") {
  const ScratchFolder folder;
  const Outcome outcome = Examine({"--set", "run.dir=" + (folder / "new/runs")});
  CHECK(outcome.exit_code == 0);
  for (const char* name : {"config ", "versions ", "data ", "disk ", "memory ", "cores ",
                           "threads ", "files ", "clock ", "gpu ", "cluster "}) {
    CHECK_THAT(outcome.out, Contains(name));
  }
  CHECK_THAT(LinesOf(outcome.out).back(), Contains("nothing found that would fail"));
  CHECK(!std::filesystem::exists(folder / "new"));
}

TEST_CASE("the doctor names a port that is taken", "[cli][doctor]") {
  const Socket taken = Socket::Listen({"127.0.0.1", 0});
  const std::string join = ToString(taken.local_address());
  const TwoNodes two;
  RequireOnlyFailure(Examine(two.Arguments("0/2", join)), "ports",
                     join + ": address already in use");
  const auto examine_feed = [&](const std::string& address, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--set", "data.feed_address=" + address};
    words.insert(words.end(), more.begin(), more.end());
    return Examine(words);
  };
  RequireOnlyFailure(examine_feed(join, {"--key-file", two.key()}), "ports",
                     join + ": address already in use");
  const std::string free = ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
  CHECK_THAT(examine_feed(free, {"--key-file", two.key()}).out,
             Contains(free + " is free for feed machines"));
  CHECK_THAT(examine_feed(free, {}).out,
             Contains("data.feed_address has no effect without a run key"));
  // Only the join address shows that node 0 is here.
  RequireOnlyFailure(Examine(two.Arguments("", join)), "ports", join);
}

TEST_CASE("what troupe node refuses is a failure: no key, no address of node 0", "[cli][doctor]") {
  const TwoNodes two;
  CHECK(Examine(two.Arguments("1/2")).exit_code == 0);
  RequireOnlyFailure(Examine(two.Arguments("1/2", "")), "ports",
                     "the address of process 0 is not given");
  const Outcome no_key = Examine(
      {"--set", "cluster.nodes=2", "--set", "cluster.join=127.0.0.1:7420", "--node", "1/2"});
  RequireOnlyFailure(no_key, "key", "no run key given");
}

TEST_CASE("the doctor guesses which node this is only where nothing says it, and says so",
          "[cli][doctor]") {
  const TwoNodes two;
  const std::string file = two.folder().Write(
      "two.toml", "extends = [\"" + std::filesystem::absolute(kShapes).string() +
                      "\"]\n[cluster]\njoin = \"10.255.255.1:1\"\n"
                      "[[cluster.nodes]]\naddress = \"10.255.255.1\"\ndevices = 4\n"
                      "[[cluster.nodes]]\naddress = \"127.0.0.1\"\ndevices = 4\n");
  const Outcome guessed = RunTroupe({"doctor", file, "--key-file", two.key()});
  CHECK_THAT(LineOf(guessed, "warning", "node"),
             Contains("not known which of n0, n1 this is; guessed n1, whose address in "
                      "cluster.nodes is this machine's\n") &&
                 Contains("-> `troupe node` does not guess: pass --node I/N"));
  CHECK_THAT(guessed.out, Contains("8 ranks in 2 processes (n0, n1); here: 4 ranks, in n1\n"));
  CHECK(RunTroupe({"node", file, "--key-file", two.key()}).exit_code == 2);
  const Outcome said = RunTroupe({"doctor", file, "--key-file", two.key(), "--node", "1/2"});
  CHECK(LineOf(said, "warning", "node") == "");
}

TEST_CASE("the doctor names data that is missing", "[cli][doctor]") {
  RequireOnlyFailure(Examine({"--set", "data.train=none.json"}), "data",
                     "data.train: no such file; looked for ");
}

TEST_CASE("the doctor names a run directory that cannot be made", "[cli][doctor]") {
  const ScratchFolder folder;
  folder.Write("file", "");
  const std::string path = folder / "file/runs";
  RequireOnlyFailure(Examine({"--set", "run.dir=" + path}), "disk", path + ": cannot create: ");
}

TEST_CASE("the doctor names nodes that do not resolve", "[cli][doctor]") {
  const ScratchFolder folder;
  folder.Write("two.toml", "extends = [\"" + std::filesystem::absolute(kShapes).string() +
                               "\"]\n[cluster]\njoin = \"127.0.0.1:1\"\n"
                               "[[cluster.nodes]]\naddress = \"127.0.0.1\"\ndevices = 4\n"
                               "[[cluster.nodes]]\naddress = \"none.invalid\"\ndevices = 4\n");
  const Outcome outcome = RunTroupe({"doctor", folder / "two.toml", "--node", "0/2"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 4);
  CHECK_THAT(outcome.out, Contains("n1: cannot resolve none.invalid: ") &&
                              Contains("-> add none.invalid to DNS or /etc/hosts"));
}

TEST_CASE("the doctor names a key file that others can read", "[cli][doctor]") {
  const TwoNodes two;
  REQUIRE(chmod(two.key().c_str(), 0644) == 0);
  RequireOnlyFailure(Examine(two.Arguments("1/2")), "key", two.key());
}

TEST_CASE("the doctor names TLS files that are missing or not what they should be",
          "[cli][doctor]") {
  const TwoNodes two;
  const std::string file = two.folder().Write("ca.pem", "no certificate");
  std::vector<std::string> arguments = two.Arguments("1/2");
  arguments.insert(arguments.end(), {"--set", "cluster.tls='on'"});
  for (const char* key : {"ca", "certificate", "key"}) {
    arguments.insert(arguments.end(),
                     {"--set", std::string("cluster.tls_") + key + "='" + file + "'"});
  }
  RequireOnlyFailure(Examine(arguments), "tls", file);
}

TEST_CASE("the doctor names what is wrong with a configuration", "[cli][doctor]") {
  RequireOnlyFailure(Examine({"--set", "run.step=3"}), "config", "did you mean \"steps\"?");
  const Outcome none = RunTroupe({"doctor", "none.toml"});
  RequireOnlyFailure(none, "config", "none.toml: ");
  CHECK_THAT(none.out, !Contains("->"));
}

TEST_CASE("processes that the doctor starts here meet, and it measures what lies between them",
          "[cli][doctor]") {
  const ScratchFolder folder;
  const Outcome outcome = Examine({"--local", "2", "--set", "run.dir=" + (folder / "runs")});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK_THAT(outcome.out, Contains("8 ranks in 2 processes (n0, n1), all here\n"));
  CHECK_THAT(outcome.out, Contains("n0, n1: all 2 are there"));
  CHECK_THAT(outcome.out, Contains("n1 reads and writes the same " + (folder / "runs")));
  CHECK_THAT(outcome.out, Contains("64.0 MiB to n1 in ") && Contains("B/s), back in "));
  CHECK_THAT(outcome.out, Contains("tensors between processes over "));
  CHECK(!std::filesystem::exists(folder / "runs"));
}

TEST_CASE("nodes that are started in different directories share the first one's run directory",
          "[cli][doctor]") {
  const TwoNodes two;
  std::filesystem::create_directory(two.folder() / "n0");
  std::filesystem::create_directory(two.folder() / "n1");
  const std::string join = ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
  const auto node = [&](const std::string& number, const std::string& where) {
    const auto absolute = [](const std::string& path) {
      return std::filesystem::absolute(path).string();
    };
    ProcessOptions options;
    options.working_directory = two.folder() / where;
    return RunTroupe({"doctor", absolute(kShapes), "--set", "cluster.nodes=2", "--join", join,
                      "--node", number, "--key-file", two.key(), "--set", "checkpoint.every=1",
                      "--set", "data.train=" + absolute("data/shapes/train.json"), "--set",
                      "data.held_out=" + absolute("data/shapes/held_out.json")},
                     options);
  };
  auto second = std::async(std::launch::async, node, "1/2", "n1");
  const Outcome first = node("0/2", "n0");
  INFO(first.out << first.err);
  CHECK(first.exit_code == 0);
  CHECK_THAT(first.out,
             Contains("n1 reads and writes the same " + (two.folder() / "n0/runs") + "\n"));
  CHECK(second.get().exit_code == 0);
}

TEST_CASE("nodes with different configurations both exit with what differs", "[cli][doctor]") {
  const ScratchFolder folder;
  RunKey::Generate().WriteFile(folder / "key");
  const std::string join = ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
  const auto node = [&](const std::string& number, const std::string& steps) {
    return RunTroupe({"doctor", kShapes, "--set", "cluster.nodes=2", "--set",
                      "run.dir=" + (folder / "runs"), "--set", "run.steps=" + steps, "--join", join,
                      "--node", number, "--key-file", folder / "key"});
  };
  auto second = std::async(std::launch::async, node, "1/2", "8");
  const Outcome first = node("0/2", "7");
  RequireOnlyFailure(first, "meeting", "run.steps is 8, n0 has 7");
  RequireOnlyFailure(second.get(), "meeting", "run.steps is 8, n0 has 7");
}

TEST_CASE("nodes with different keys are advised to compare the files", "[cli][doctor]") {
  const TwoNodes two;
  const TwoNodes other;
  const std::string join = ToString(Socket::Listen({"127.0.0.1", 0}).local_address());
  const auto node = [&](const std::string& number, const std::string& key) {
    return RunTroupe({"doctor", kShapes, "--set", "cluster.nodes=2", "--set",
                      "cluster.join_timeout_s=3", "--set", "run.dir=" + (two.folder() / "runs"),
                      "--join", join, "--node", number, "--key-file", key});
  };
  auto second = std::async(std::launch::async, node, "1/2", other.key());
  const Outcome first = node("0/2", two.key());
  RequireOnlyFailure(first, "meeting", "could not prove the run key");
  RequireOnlyFailure(second.get(), "meeting", "does not have this run key");
  CHECK_THAT(LineOf(first, "failure", "meeting"),
             Contains("-> give every node a copy of the same"));
}

TEST_CASE("the doctor's arguments are checked and explained", "[cli][doctor]") {
  const Outcome help = RunTroupe({"doctor", "--help"});
  CHECK(help.exit_code == 0);
  for (const char* word : {"CONFIG", "--set", "--node", "--join", "--address", "--key-file",
                           "--local", "Exit code: 0"}) {
    CHECK_THAT(help.out, Contains(word));
  }
  CHECK(RunTroupe({"doctor"}).exit_code == 2);
  CHECK(RunTroupe({"doctor", kShapes, "--local", "2", "--node", "0/2"}).exit_code == 2);
  CHECK(RunTroupe({"doctor", kShapes, "--node", "5/2"}).exit_code == 2);
  const Outcome uneven = RunTroupe({"doctor", kShapes, "--local", "3"});
  CHECK(uneven.exit_code == 2);
  CHECK_THAT(uneven.err, Contains("troupe: --local: ") && Contains("3"));
  const Outcome nobody = RunTroupe({"doctor", kShapes, "--set", "cluster.nodes=2", "--join", "x"});
  CHECK(nobody.exit_code == 2);
}

}  // namespace troupe
