// Builds a job over all its processes, from process 0: asks each Node for the actors that live
// there, sinks first, because an actor is born knowing whom it speaks to.
//
//   traces      every process its own file
//   devices     every process its own
//   lock steps  where the lowest rank of the set lives
//   updates     where their first shard lives
//   stages      in reverse topological order, each replica where its first rank lives; before a
//               stage, the leaders or the phase between it and what it feeds
//   feeds       with the stages they feed, one per process that holds any of them
//   director    here
//
// A step's requests run at once, all over the job; the next step begins when all are answered.
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
  /// `built` is called with an empty text when the Director exists, or with what went wrong.
  void Start();
  /// Nothing more is asked for, and nobody is told.
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
  std::vector<OutgoingLink> TargetsOf(int stage, int dp) const;

  NodePointer self_;
  const NodeConfig& config_;
  const JobPlan& plan_;
  std::function<void(const std::string&)> built_;
  std::deque<Step> steps_;
  std::size_t open_ = 0;  ///< requests of the current step
  bool issuing_ = false;  ///< the step is still asking
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
