// The checks of checks.hpp about two processes, and the table.
#include <algorithm>
#include <array>
#include <cmath>

#include "cli/doctor/checks.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Half of one gigabit: below, moving tensors takes longer than computing them.
constexpr double kSlowBytesPerSecond = 60e6;
constexpr double kClocksApart_s = 1.0;

/// A problem that names both sides and their difference needs no advice.
std::string AdviceOn(JoinFault fault) {
  switch (fault) {
    case JoinFault::kOther:
      return "";
    case JoinFault::kRunKey:
      return "give every node a copy of the same key file, and every job a separate port";
    case JoinFault::kBuild:
      return "the same verb of the same build must run on every node";
    case JoinFault::kListen:
      return "end the program that listens there, or choose an address of this machine and a free "
             "port: --join "
             "for node 0, --address for the others";
    case JoinFault::kAbsent:
      return "run the same command on every node within cluster.join_timeout_s, each with its own "
             "--node";
    case JoinFault::kUnreachable:
      return "run the same command there at the same time; is that an address of its machine "
             "(--join, --address), and does a firewall let it pass?";
    case JoinFault::kUnreached:
      return "is its address one that the others can reach (--address), and does a firewall let "
             "them pass?";
  }
  return "";
}

std::string DurationText(double seconds) {
  return Duration(static_cast<std::int64_t>(seconds * 1e9));
}

std::string RateText(std::uint64_t bytes, double seconds) {
  const double rate = static_cast<double>(bytes) / std::max(seconds, 1e-9);
  return rate < 1e9 ? Formatted("%.0f MB/s", rate / 1e6) : Formatted("%.1f GB/s", rate / 1e9);
}

/// Whether bytes stay on this machine: shared memory, or TCP over loopback.
bool StaysHere(const std::string& transport) {
  for (const char* local : {"sysv", "posix", "cma", "tcp/lo"}) {
    if (transport.find(local) != std::string::npos) return true;
  }
  return false;
}

std::string SlowAdvice(const std::string& transport) {
  if (StaysHere(transport)) {
    return "slow for " + transport +
           ", which stays on this machine: its processors or its memory are busy with other "
           "programs";
  }
  return "less than half of a 1 Gbit/s link: is " + (transport.empty() ? "it" : transport) +
         " the right interface (transport.net_devices, cluster.nodes), and is it free of other "
         "traffic?";
}

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kFailure:
      return "failure";
  }
  return "?";
}

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

Finding Well(std::string name, std::string line) {
  return {std::move(name), Verdict::kOk, std::move(line), ""};
}
Finding Warns(std::string name, std::string line, std::string advice) {
  return {std::move(name), Verdict::kWarning, std::move(line), std::move(advice)};
}
Finding Fails(std::string name, std::string line, std::string advice) {
  return {std::move(name), Verdict::kFailure, std::move(line), std::move(advice)};
}

bool AnyFailure(const Findings& findings) {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.verdict == Verdict::kFailure; });
}

std::string FindingsTable(Findings findings) {
  std::ranges::stable_sort(findings, {}, &Finding::verdict);
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.name.size());
  std::string text;
  for (const Finding& finding : findings) {
    const std::string head = Padded(Word(finding.verdict), 9) + Padded(finding.name, width + 2);
    text += head + finding.line + "\n";
    if (finding.advice.empty()) continue;
    text += std::string(head.size(), ' ') + "-> " + finding.advice + "\n";
  }
  const auto failures = std::ranges::count(findings, Verdict::kFailure, &Finding::verdict);
  const auto warnings = std::ranges::count(findings, Verdict::kWarning, &Finding::verdict);
  return text + (failures == 0 ? "nothing found that would fail" : "the job would fail") + ": " +
         Counted(std::ssize(findings), "check") + ", " + Counted(warnings, "warning") + ", " +
         Counted(failures, "failure") + "\n";
}

Finding CheckPath(const PathFacts& facts, double suspect_after_s) {
  std::string line = facts.node + " answers within " + DurationText(facts.round_trip_s);
  if (facts.mtu_there > 0) line += ", MTU " + std::to_string(facts.mtu_there);
  if (facts.round_trip_s > suspect_after_s) {
    return Fails("path", line, "the network is slower than cluster.suspect_after_s allows");
  }
  if (facts.round_trip_s > suspect_after_s / 4) {
    return Warns("path", line,
                 "raise cluster.suspect_after_s: a busy moment would look like a loss");
  }
  if (facts.mtu_there > 0 && facts.mtu_back > 0 && facts.mtu_there != facts.mtu_back) {
    return Warns("path", line + " there and " + std::to_string(facts.mtu_back) + " back",
                 "give both ends and the switches between the same MTU: large packets may be lost");
  }
  return Well("path", line);
}

Finding CheckClockDifference(const PathFacts& facts) {
  const std::string sure = ", known to " + DurationText(facts.best_round_trip_s / 2);
  const std::string line = facts.node + "'s clock is " +
                           DurationText(std::abs(facts.clock_ahead_s)) +
                           (facts.clock_ahead_s < 0 ? " behind" : " ahead") + sure;
  if (std::abs(facts.clock_ahead_s) < kClocksApart_s) return Well("clocks", line);
  return Warns("clocks", line,
               "synchronise the clocks: times in logs and names of runs would not fit");
}

Finding CheckTransfer(const TransferFacts& facts) {
  const std::string what = Bytes(facts.bytes);
  if (!facts.intact) {
    return Fails("tensors", what + " between here and " + facts.node + " arrived changed",
                 "the network or a machine's memory is faulty; transport.verify = \"payload\" "
                 "notices it in a job");
  }
  const std::string line = what + " to " + facts.node + " in " + DurationText(facts.there_s) +
                           " (" + RateText(facts.bytes, facts.there_s) + "), back in " +
                           DurationText(facts.back_s) + " (" + RateText(facts.bytes, facts.back_s) +
                           ")";
  const double slowest = std::max(facts.there_s, facts.back_s);
  if (static_cast<double>(facts.bytes) / std::max(slowest, 1e-9) >= kSlowBytesPerSecond) {
    return Well("tensors", line);
  }
  return Warns("tensors", line, SlowAdvice(facts.transport));
}

Finding CheckMeeting(const JoinProblem& problem) {
  return Fails("meeting", problem.text, AdviceOn(problem.fault));
}

Finding CheckSharedDirectory(const std::string& node, const std::string& directory,
                             const std::string& error, bool writes_checkpoints) {
  if (error.empty()) return Well("shared", node + " reads and writes the same " + directory);
  const std::string line = node + " does not share " + directory + ": " + error;
  const std::string advice =
      "put run.dir on a file system that all nodes mount: each writes its "
      "part of a checkpoint there";
  return writes_checkpoints ? Fails("shared", line, advice) : Warns("shared", line, advice);
}

}  // namespace troupe
