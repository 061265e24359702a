// One process of the job: spawns the actors of its ranks, watches them, ends them.
//   receives  RunJob  answers JobDone when every round is complete or the job has failed, and all
//                     actors of this process have ended
//   sends     RunJob to the Director, CloseTrace to the Tracer, exit messages to everybody
//
// An actor that ends unasked fails the job by name. Every actor is owned here and nowhere else, so
// handles that point at each other cannot keep a finished job alive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_base.hpp"
#include "actors/director_actor.hpp"
#include "actors/job_plan.hpp"
#include "messages/job.hpp"
#include "messages/trace.hpp"
#include "trace/ring.hpp"
#include "transport/abort_signal.hpp"
#include "transport/endpoint.hpp"

namespace troupe {

struct NodeConfig {
  std::shared_ptr<const JobPlan> plan;
  ProgramFactory make_program;
  std::function<void()> setup_thread;  ///< first on every device thread; may be empty
  std::shared_ptr<InputSource> source;
  std::shared_ptr<JobObserver> observer;
  std::shared_ptr<AbortSignal> abort;
  RoundPlan rounds;
  bool inspect = false;  ///< show all tensors to the observer after every step
  int rounds_ahead = 1;
  std::string trace_path;                      ///< empty: no trace file
  std::map<int, std::shared_ptr<Ring>> rings;  ///< by rank; may be empty
  /// Devices, feeds and the director get threads of their own. Off under the deterministic
  /// scheduler of tests, where nothing may block.
  bool threads = true;
};

struct NodeState {
  static constexpr const char* name = "node";

  NodeConfig config;
  std::unique_ptr<LocalTransport> transport;
  std::shared_ptr<void> abort_subscription;
  Director director;
  Tracer tracer;
  std::map<caf::actor_addr, std::string> children;  ///< alive, with their names
  std::vector<caf::actor> owned;
  bool stopping = false;
  JobDone result;
  caf::typed_response_promise<JobDone> asker;
};

Node::behavior_type RunNode(ActorPointer<Node, NodeState> self, NodeConfig config);

}  // namespace troupe
