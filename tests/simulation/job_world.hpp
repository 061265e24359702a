// A job in the simulated world. Its processes run the code of `troupe node`, one on each machine. A
// launcher on each machine starts a lost process again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/launched_child.hpp"
#include "tests/simulation/kernel.hpp"
#include "tests/simulation/network.hpp"

namespace troupe::testing {

struct WorldJob {
  std::string config;    ///< file
  std::string key_file;  ///< of the run key
  std::string into;      ///< run directory
  int num_processes = 3;
  int num_spares = 0;
  int restarts = 20;
  SimTime limit = Ms(600'000);
};

/// What became of a job.
struct WorldEnd {
  std::string fault;  ///< why it did not end as it should; empty: it did
  std::vector<double> losses;
  std::uint64_t digest = 0;     ///< of all events
  SimTime took = 0;             ///< until process 0 ended
  std::int64_t switches = 0;    ///< from one thread to another
  int starts = 0;               ///< of processes
  int lost_processes = 0;       ///< that ended before the job was done
  std::int64_t lost_steps = 0;  ///< complete ones that were repeated, at most by one generation
  int reduced = 0;              ///< generations that went on without some processes
  int whole_again = 0;          ///< and then with all
  bool has_failed = false;      ///< the job, after a disk was full
  std::string cause;            ///< then: what it printed
  std::string faults;           ///< what was done to it, for people
};

class JobWorld {
 public:
  JobWorld(const WorldJob& job, std::uint64_t seed);

  /// Runs the job to its end. `plan` adds faults before it begins.
  WorldEnd Run(const std::function<void(JobWorld&)>& plan);

  Kernel& kernel() { return kernel_; }
  Network& network() { return network_; }
  int num_places() const { return static_cast<int>(places_.size()); }
  Machine* MachineOf(int place) { return places_.at(static_cast<std::size_t>(place)).machine; }
  /// The process that runs there now; null: none does.
  SimProcess* ProcessOf(int place);
  /// Cuts the path from one machine to another, or mends it.
  void CutPath(int from, int to, bool cut);
  /// Cuts a machine off from all others, or ends that.
  void CutPaths(int place, bool cut);
  /// Kills the process of a place, if one runs there.
  void Kill(int place);
  /// Once the job has met: the machine loses its power for a while, and with it what it has sent and was
  /// sent.
  void CutPower(int place, SimTime length);
  /// Once the job has met: the machine loses its power for good, and a spare has to take the place.
  void Remove(int place);
  /// A fault happens at a time. `text` describes it for people.
  void At(SimTime time, const std::string& text, std::function<void()> event);
  /// The process dies after so many more of the calls by which it changes anything.
  void DieAfter(int place, std::int64_t calls);
  /// None of its threads runs for a while.
  void Stop(int place, SimTime length);
  /// The disk takes nothing for a while. The job may fail; then all its processes must end.
  void FillDisk(SimTime length);

 private:
  struct Place {
    Machine* machine = nullptr;
    LaunchedChild child = {};
    SimProcess* process = nullptr;
    std::string partial = {};  ///< of its last record
    std::string cause = {};
    bool is_spare = false;
    bool is_removed = false;
    bool is_done = false;
    bool is_unreachable = false;  ///< process 0 could not reach it when that ended
    SimTime dark_until = 0;       ///< without power
  };

  void Start(std::size_t place, std::int64_t generation);
  void Ended(SimProcess* process);
  void Note(Place& place, const std::string& bytes);
  /// Process 0 has ended for the last time.
  void NoteEnd();
  /// Looks now and then how many steps are complete.
  void CountSteps();
  /// Process 0 has joined a generation, and the state that it goes on from is known.
  void NoteGeneration();
  bool IsDone() const;
  void ReadLosses(WorldEnd& end) const;

  const WorldJob job_;
  Kernel kernel_;
  Network network_;
  std::vector<Place> places_;
  std::string fault_;
  std::string faults_;
  int starts_ = 0;
  int lost_processes_ = 0;
  bool has_met_ = false;  ///< the job, for the first time
  bool may_fail_ = false;
  bool has_failed_ = false;
  SimTime done_at_ = -1;
  std::int64_t complete_ = 0;     ///< steps of this generation
  std::int64_t num_changes_ = 0;  ///< when the steps were counted last
  std::uintmax_t metrics_bytes_ = 0;
  std::size_t num_events_ = 0;  ///< that were noted in the run directory
  std::int64_t lost_steps_ = 0;
  int reduced_ = 0;
  int whole_again_ = 0;
  bool is_reduced_ = false;

  friend bool TakesOutput(int descriptor, std::string_view bytes);
};

/// Runs a world in a child process, which need not clean up after it.
WorldEnd InOwnProcess(const std::function<WorldEnd()>& run);

}  // namespace troupe::testing
