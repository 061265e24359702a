// Builds a job over all its processes, from process 0: requests the actors of each process from its
// Node, sinks first, because an actor is created with the handles of its receivers.
//
//   traces      every process its own file
//   devices     every process its own
//   lock steps  in the process of the lowest rank of the set
//   updates     in the process of their first shard
//   stages      in reverse topological order, each replica in the process of its first rank; before
//               a stage, the leaders or the phase on its outgoing edges
//   feeds       with the stages they feed, one per process that holds any of them
//   director    in process 0
//
// All requests of a step run concurrently; the next step begins when all are answered.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/spawn_actors.hpp"

namespace troupe {

class JobBuilder : public std::enable_shared_from_this<JobBuilder> {
 public:
  JobBuilder(NodePointer self, std::function<void(const std::string& error)> built);
  /// `built` is called with "" when the Director exists, or with the error.
  void Start();
  /// Sends no more requests and does not call `built`.
  void Cancel() { failed_ = true; }

 private:
  std::string CheckRunDirectory();
  using Step = std::function<void()>;

  void Next();
  /// Asks the Node of `process`; `take` gets the answer before the step ends.
  template <class Answer, class Request, class Take>
  void Ask(ProcessId process, Request request, Take take);
  template <class Handle, class Request, class Take>
  void AskForActor(ProcessId process, Request request, Take take);

  ProcessId HomeOfStage(int stage, int dp) const;
  LockStep LockStepOf(int rank) const { return lock_steps_.at(plan_.LockStepOf(rank)); }

  void Devices();
  void LockSteps();
  void PassLockStep(int stage, int dp);
  void Updates();
  void Receivers(int stage);
  void SourceLeaders(int stage);
  void Stages(int stage);
  void Feeds();
  void Traces();
  void TheDirector();
  std::vector<LinkTarget> TargetsOf(int stage, int dp) const;

  NodePointer self_;
  const NodeConfig& config_;
  const JobPlan& plan_;
  std::function<void(const std::string&)> built_;
  std::deque<Step> steps_;
  std::size_t open_ = 0;  ///< requests of the current step
  bool issuing_ = false;  ///< the step is still sending requests
  bool failed_ = false;

  std::map<int, Device> devices_;                                 ///< by rank
  std::map<int, LockStep> lock_steps_;                            ///< by set
  std::map<int, ProcessId> lock_step_homes_;                      ///< by set
  std::map<std::pair<int, int>, LockStep> pass_lock_steps_;       ///< by stage and replica
  std::map<int, Update> updates_;                                 ///< by index in the plan
  std::map<int, std::map<int, Stage>> stages_;                    ///< by stage, then replica
  std::map<int, std::map<int, DestinationLeader>> destinations_;  ///< by link, then replica
  std::map<int, std::map<int, SourceLeader>> sources_;            ///< by link, then replica
  std::map<int, Phase> phases_;                                   ///< by link
  std::vector<Feed> feeds_;
};

}  // namespace troupe
