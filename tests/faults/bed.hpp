// The real program in several processes, and what can happen to them: on hosts of their own (Bed),
// or on this one under one launcher (LocalBed). They train configs/shapes.toml without evaluations,
// for longer than any test takes unless requested otherwise, in a folder that is gone afterwards.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <signal.h>
#include <string>
#include <vector>

#include "tests/cluster/scratch_folder.hpp"
#include "tests/faults/network.hpp"
#include "tests/faults/program.hpp"

namespace troupe::testing {

/// For what a test waits for that is not itself under test: a busy machine starts programs slowly.
constexpr std::chrono::seconds kPatience{120};

/// A scratch folder with a run key, and the programs' words in it.
class Job {
 public:
  Job();
  /// `troupe train configs/shapes.toml`, then `more`. `settings` are KEY=VALUE.
  std::vector<std::string> Train(const std::vector<std::string>& settings,
                                 const std::vector<std::string>& more) const;
  /// `troupe node configs/shapes.toml` as process `node` of `nodes`.
  std::vector<std::string> Node(int node, int nodes, const std::string& join,
                                const std::vector<std::string>& settings,
                                const std::vector<std::string>& more = {}) const;
  /// `name` in the folder.
  std::string File(const std::string& name) const { return folder_.File(name); }
  const std::string& path() const { return path_; }
  /// The run directories made so far.
  std::vector<std::string> Runs() const;
  /// Losses of the training steps in the only run's metrics.jsonl. Throws std::runtime_error when
  /// there is not exactly one run.
  std::vector<double> Losses() const;

 private:
  ScratchFolder folder_;
  std::string path_ = folder_.File("");
};

/// An address of this host at which nothing listens.
std::string FreeAddress();

struct BedOptions {
  int nodes = 4;
  std::vector<std::string> settings = {};  ///< KEY=VALUE on top of the usual ones
  std::vector<std::string> faults = {};    ///< as --plant-fault takes them, in every process
  int strangers = 0;                       ///< hosts besides those of the job, numbered after them
};

/// `troupe node` on each of several hosts: 0 .. nodes - 1, called n0, n1, ... Where the fault that
/// happens is meant below, it is the last Kill, Stop, LinkDown, CutOneWay or LimitPackets.
class Bed {
 public:
  /// Empty, or why there can be none here; the test then says so and passes.
  static const std::string& Available() { return Network::Available(); }

  /// Starts all nodes. Throws std::runtime_error with the system's words.
  explicit Bed(BedOptions options = {});
  ~Bed();

  void Kill(int node, int signal = SIGKILL);
  void Stop(int node);
  void Continue(int node);
  void LinkDown(int node);
  void LinkUp(int node);
  void CutOneWay(int from, int to);
  void LimitPackets(int node, int bytes);

  /// Until the first node prints that step. Throws std::runtime_error with what all have printed
  /// when that takes too long.
  void AwaitStep(int step) const;
  /// A line of `node` that contains `text` and came after the fault.
  std::optional<Line> WaitForLine(int node, const std::string& text,
                                  std::chrono::milliseconds timeout) const;
  /// How all ended, by node; `timeout` is for all together.
  std::vector<Ending> WaitAll(std::chrono::milliseconds timeout) const;

  /// Seconds from the fault to `moment`.
  double SinceFault(Clock::time_point moment) const;
  Program& operator[](int node) const { return *programs_[static_cast<std::size_t>(node)]; }
  int nodes() const { return options_.nodes; }
  const Network& network() const { return network_; }
  const Job& job() const { return job_; }
  /// What all have printed.
  std::string Transcript() const;

 private:
  BedOptions options_;
  Job job_;
  Network network_;
  std::vector<std::unique_ptr<Program>> programs_;
  Clock::time_point fault_at_{};
};

/// `troupe train --local`: works everywhere. Its temporary files are in the job's folder, too.
class LocalBed {
 public:
  explicit LocalBed(const BedOptions& options = {});
  /// The launcher's children do not end with it at once; this makes them.
  ~LocalBed();

  Program& program() const { return *program_; }
  const Job& job() const { return job_; }
  /// The processes of the job, in their order.
  std::vector<pid_t> Processes() const { return ChildrenOf(program_->pid()); }
  /// As Bed::AwaitStep.
  void AwaitStep(int step) const;

 private:
  Job job_;
  std::unique_ptr<Program> program_;
};

}  // namespace troupe::testing
