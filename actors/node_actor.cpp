#include "actors/node_actor.hpp"

#include <exception>
#include <utility>

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>

#include "actors/spawn_actors.hpp"
#include "actors/wait_lists.hpp"

namespace troupe {
namespace {

bool First(const NodeState& s) { return s.config.self == 0; }

/// Answers RunJob and EndActors once all actors of the process (and, on process 0, all other
/// processes) have ended.
void AnswerIfAllEnded(NodePointer self) {
  NodeState& s = self->state;
  if (!s.stopping || !s.children.empty() || s.missing_ends > 0) return;
  if (s.actors_ended.pending()) s.actors_ended.deliver(ActorsEnded{});
  if (s.job_done.pending()) s.job_done.deliver(s.result);
}

/// Ends all actors. Exit messages are urgent, or they would wait for the work in the mailboxes.
void StopAll(NodePointer self) {
  NodeState& s = self->state;
  if (std::exchange(s.stopping, true)) return;
  for (const caf::actor& child : s.owned) {
    caf::anon_send<caf::message_priority::high>(
        child, caf::exit_msg{child.address(), caf::exit_reason::user_shutdown});
  }
  s.owned.clear();
  if (s.cancel_build) std::exchange(s.cancel_build, nullptr)();
  s.director = Director();
  AnswerIfAllEnded(self);
}

/// From now on a process that leaves is not a failure.
void LetOthersLeave(NodePointer self) {
  NodeState& s = self->state;
  if (std::exchange(s.ending, true)) return;
  if (s.config.ending) s.config.ending();
}

/// Process 0: the job is over. The others end first.
void EndEverywhere(NodePointer self) {
  NodeState& s = self->state;
  if (s.ending) return;
  LetOthersLeave(self);
  const auto ended = [self] {
    if (--self->state.missing_ends == 0) StopAll(self);
  };
  for (const auto& [process, node] : s.nodes) {
    if (process == s.config.self) continue;
    ++s.missing_ends;
    self->request(node, s.result.failure.empty() ? s.config.patience : s.config.patience / 5,
                  EndActors{s.result.failure})
        .then([ended](const ActorsEnded&) { ended(); },
              [self, ended](const caf::error&) {
                ++self->state.result.num_silent;
                ended();
              });
  }
  if (s.missing_ends == 0) StopAll(self);
}

void OnDown(NodePointer self, const caf::down_msg& down) {
  NodeState& s = self->state;
  const auto child = s.children.find(down.source);
  if (child == s.children.end()) return;
  const bool is_link = child->second.kind == ActorKind::kMachineLink;
  if (is_link && s.config.actors) s.config.actors->Remove(ToString(child->second));
  if (!s.stopping && (!is_link || down.reason != caf::exit_reason::normal)) {
    const std::string name = ToString(child->second);
    s.config.abort->Raise({name + " ended unexpectedly: " + FailureOf(down.reason).text,
                           FailureKind::kError,
                           {name}});
  }
  s.children.erase(child);
  std::erase_if(s.owned, [&](const caf::actor& owned) { return owned.address() == down.source; });
  AnswerIfAllEnded(self);
}

/// The job has failed, in this process or another. The first time, reports it to all other
/// processes.
void OnFailed(NodePointer self, const Failure& failure) {
  NodeState& s = self->state;
  // The job is done. A process that does not know this yet has lost others that have left.
  if (s.ending && s.result.failure.empty() && !s.config.abort->raised()) return;
  s.config.abort->Raise(failure);
  if (std::exchange(s.failed, true)) return;
  if (s.nodes_known.pending()) s.nodes_known.deliver(MakeFailure(s.config.abort->failure()));
  WriteNextToTraces(s.config, kCauseFile, CauseText(s.config.abort->failure()));
  for (const auto& [process, node] : s.nodes) {
    if (process != s.config.self) self->send(node, JobFailed{s.config.abort->failure()});
  }
  if (s.result.failure.empty()) s.result.failure = s.config.abort->failure();
  if (s.director) return self->send(s.director, JobFailed{s.config.abort->failure()});
  if (First(s)) return EndEverywhere(self);
  // Process 0 ends all processes, unless it is the one that was lost.
  if (s.nodes.count(0) == 0) return StopAll(self);
  self->delayed_send(self, s.config.patience / 2, GiveUp{});
}

void RunDirectorOf(NodePointer self) {
  NodeState& s = self->state;
  // They arrived before there was a Director.
  if (s.stop_asked) self->send(s.director, StopSoon{});
  if (s.save_asked) self->send(s.director, SaveSoon{});
  const auto end = [self, &s](const Failure& failure) {
    if (s.result.failure.empty()) s.result.failure = failure;
    EndEverywhere(self);
  };
  self->request(s.director, caf::infinite, RunJob{})
      .then([end](const JobDone& done) { end(done.failure); },
            [end, &s](const caf::error& reason) {
              end(s.config.abort->raised() ? s.config.abort->failure() : FailureOf(reason));
            });
}

void Build(NodePointer self) {
  NodeState& s = self->state;
  s.cancel_build = BuildJob(self, [self, &s](const std::string& error) {
    if (error.empty() && !s.failed) return RunDirectorOf(self);
    if (s.result.failure.empty()) {
      s.result.failure = s.failed ? s.config.abort->failure() : Failure("cannot start: " + error);
    }
    s.config.abort->Raise(s.result.failure);
    EndEverywhere(self);
  });
}

/// Spawns the actor of a request. Most likely it fails because no thread is left.
template <class Answer, class Request>
caf::result<Answer> Make(NodePointer self, const Request& request) {
  try {
    return Spawn(self, request);
  } catch (const std::exception& e) {
    return MakeFailure(e.what());
  }
}

void AnswerIfAllKnown(NodePointer self) {
  NodeState& s = self->state;
  if (!s.nodes_known.pending() || s.nodes.size() < s.config.processes->processes().size()) return;
  s.nodes_known.deliver(NodesKnown{s.tensor_addresses, s.feed_addresses});
}

void OnIntroduced(NodePointer self, const Introduce& other) {
  NodeState& s = self->state;
  s.nodes[other.process] = caf::actor_cast<Node>(other.node);
  if (s.config.trace) s.config.trace->KnowProcess(other.node.node(), other.process);
  s.tensor_addresses.at(At(other.process)) = other.tensor_address;
  if (!other.feed_address.empty()) s.feed_addresses.push_back(other.feed_address);
  if (!other.sees_run_directory) s.apart.push_back(other.process);
  AnswerIfAllKnown(self);
}

caf::result<NodesKnown> OnAwaitNodes(NodePointer self, const AwaitNodes& await) {
  NodeState& s = self->state;
  if (s.failed) return MakeFailure(s.config.abort->failure());
  s.nodes_known = self->make_response_promise<NodesKnown>();
  const Introduce me{s.config.self, caf::actor_cast<caf::actor>(self), s.config.tensor_address,
                     await.sees_run_directory, s.config.feed_address};
  for (const caf::actor& other : await.others) {
    self->request(caf::actor_cast<Node>(other), kGreetingTime, me)
        .then([self](const Introduce& answer) { OnIntroduced(self, answer); },
              [&s](const caf::error& reason) {
                if (s.nodes_known.pending()) s.nodes_known.deliver(MakeFailure(FailureOf(reason)));
              });
  }
  AnswerIfAllKnown(self);
  return s.nodes_known;
}

void OnLeave(NodePointer self, const LeaveJob& leave) {
  NodeState& s = self->state;
  const auto node = s.nodes.find(leave.process);
  if (s.failed || s.ending || node == s.nodes.end()) return;
  if (leave.process != s.config.self) return self->send(node->second, leave);
  if (s.config.leave) s.config.leave();
}

caf::result<JobDone> OnRunJob(NodePointer self) {
  NodeState& s = self->state;
  s.job_done = self->make_response_promise<JobDone>();
  s.running = true;
  if (s.failed) {
    StopAll(self);
  } else if (First(s)) {
    Build(self);
  } else if (s.devices_spawned.pending()) {
    try {
      s.devices_spawned.deliver(Spawn(self, SpawnDevices{}));
    } catch (const std::exception& e) {
      s.devices_spawned.deliver(MakeFailure(e.what()));
    }
  }
  return s.job_done;
}

}  // namespace

Node::behavior_type RunNode(NodePointer self, NodeConfig config) {
  NodeState& s = self->state;
  s.config = std::move(config);
  s.nodes[s.config.self] = Node(self);
  s.tensor_addresses.resize(s.config.processes->processes().size());
  self->set_down_handler([self](caf::down_msg& down) { OnDown(self, down); });
  s.abort_subscription = s.config.abort->Subscribe(
      [node = caf::actor_cast<caf::actor_addr>(Node(self))](const Failure& failure) {
        const auto strong = caf::actor_cast<caf::actor>(node);
        if (strong) caf::anon_send(strong, JobFailed{failure});
      });
  return {
      [self, &s](const Introduce& other) -> Introduce {
        OnIntroduced(self, other);
        return {s.config.self, caf::actor_cast<caf::actor>(self), s.config.tensor_address, true,
                s.config.feed_address};
      },
      [self](const AwaitNodes& await) { return OnAwaitNodes(self, await); },
      [self](const RunJob&) { return OnRunJob(self); },
      [self](const JobFailed& failed) { OnFailed(self, failed.failure); },
      [self, &s](const SaveSoon& save) {
        if (s.director) return self->send(s.director, save);
        const auto first = s.nodes.find(0);
        if (First(s)) s.save_asked = true;
        if (!First(s) && first != s.nodes.end()) self->send(first->second, save);
      },
      [self, &s](const StopSoon& stop) {
        s.stop_asked = true;
        if (s.director) return self->send(s.director, stop);
        const auto first = s.nodes.find(0);
        if (!First(s) && first != s.nodes.end()) self->send(first->second, stop);
      },
      [self](const GiveUp&) { StopAll(self); },
      [self, &s](const SpawnDevices& request) -> caf::result<DevicesSpawned> {
        if (s.running) return Make<DevicesSpawned>(self, request);
        s.devices_spawned = self->make_response_promise<DevicesSpawned>();
        return s.devices_spawned;
      },
      [self](const SpawnLockStep& request) { return Make<Spawned>(self, request); },
      [self](const SpawnUpdate& request) { return Make<Spawned>(self, request); },
      [self](const SpawnStage& request) { return Make<Spawned>(self, request); },
      [self](const SpawnDestinationLeader& request) { return Make<Spawned>(self, request); },
      [self](const SpawnSourceLeader& request) { return Make<Spawned>(self, request); },
      [self](const SpawnPhase& request) { return Make<Spawned>(self, request); },
      [self](const SpawnFeed& request) { return Make<Spawned>(self, request); },
      [self](const OpenTrace& request) -> caf::result<TraceOpened> {
        try {
          return TraceOpened{OpenTraceFile(self, request)};
        } catch (const std::exception& e) {
          return MakeFailure(e.what());
        }
      },
      [self](const FindFile& find) { return FindOnDisk(self, find); },
      [self](const ReadFile& read) { return ReadOnDisk(self, read); },
      [self](const PublishManifest& publish) { return PublishOnDisk(self, publish); },
      [self](const HoldMirror& hold) { return HoldMirrorOf(self, hold); },
      [self](const GiveFiles& give) { return GiveHeld(self, give); },
      [&s](const CompleteHeld& complete) {
        s.config.held->Complete(complete.folder, complete.manifest);
        return HeldCompleted{};
      },
      [&s](const NodeWorkEnded& ended) {
        const auto work = s.continuations.extract(ended.number);
        if (!work.empty()) work.mapped()();
      },
      [self](const LeaveJob& leave) { OnLeave(self, leave); },
      [self](const MachineCame& came) { AddMachine(self, came.machine); },
      [&s](const PeerLost& lost) { s.nodes.erase(lost.process); },
      [self](const Stalled& stalled) { OnStalled(self, stalled); },
      [self](const WriteWaits& write) { WriteAllWaits(self, write); },
      [self](const ReportWaits&) { return CollectWaits(self); },
      [self, &s](const EndActors& end) -> caf::result<ActorsEnded> {
        LetOthersLeave(self);
        s.actors_ended = self->make_response_promise<ActorsEnded>();
        // If the job is done, a process that this one has lost meanwhile has only left before it.
        if (s.result.failure.empty() || end.failure.empty()) s.result.failure = end.failure;
        StopAll(self);
        return s.actors_ended;
      },
  };
}

}  // namespace troupe
