#include "actors/node_actor.hpp"

#include <exception>
#include <utility>

#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>

#include "actors/spawn_job.hpp"

namespace troupe {
namespace {

using Self = ActorPointer<Node, NodeState>;

void AnswerIfAllEnded(Self self) {
  NodeState& s = self->state;
  if (s.stopping && s.children.empty() && s.asker.pending()) s.asker.deliver(s.result);
}

/// Ends everybody. Exit messages are urgent, or they would queue behind work.
void StopAll(Self self) {
  NodeState& s = self->state;
  if (std::exchange(s.stopping, true)) return;
  for (const caf::actor& child : s.owned) {
    caf::anon_send<caf::message_priority::high>(
        child, caf::exit_msg{child.address(), caf::exit_reason::user_shutdown});
  }
  s.owned.clear();
  s.director = Director();
  s.tracer = Tracer();
  AnswerIfAllEnded(self);
}

void CloseTraceThenStop(Self self) {
  NodeState& s = self->state;
  if (!s.tracer) return StopAll(self);
  self->request(s.tracer, caf::infinite, CloseTrace{})
      .then(
          [self, &s](const TraceClosed& closed) {
            if (!closed.error.empty() && s.result.failure.empty()) {
              s.result.failure = closed.error;
            }
            StopAll(self);
          },
          [self](const caf::error&) { StopAll(self); });
}

void OnDown(Self self, const caf::down_msg& down) {
  NodeState& s = self->state;
  const auto child = s.children.find(down.source);
  if (child == s.children.end()) return;
  if (!s.stopping) {
    s.config.abort->Raise(child->second + " ended unasked: " + TextOf(down.reason));
  }
  s.children.erase(child);
  AnswerIfAllEnded(self);
}

}  // namespace

Node::behavior_type RunNode(Self self, NodeConfig config) {
  NodeState& s = self->state;
  s.config = std::move(config);
  s.transport = std::make_unique<LocalTransport>(s.config.abort);
  self->set_down_handler([self](caf::down_msg& down) { OnDown(self, down); });
  try {
    SpawnJob(self);
  } catch (const std::exception& e) {  // no thread to be had, most likely
    s.result.failure = std::string("cannot start: ") + e.what();
    return {[self, &s](const RunJob&) -> caf::result<JobDone> {
      s.asker = self->make_response_promise<JobDone>();
      auto answer = s.asker;
      StopAll(self);
      return answer;
    }};
  }
  s.abort_subscription =
      s.config.abort->Subscribe([director = s.director](const std::string& cause) {
        caf::anon_send(director, JobFailed{cause});
      });
  return {[self, &s](const RunJob& run) -> caf::result<JobDone> {
    s.asker = self->make_response_promise<JobDone>();
    auto answer = s.asker;
    self->request(s.director, caf::infinite, run)
        .then(
            [self, &s](const JobDone& done) {
              s.result = done;
              CloseTraceThenStop(self);
            },
            [self, &s](const caf::error& reason) {
              s.result.failure =
                  s.config.abort->raised() ? s.config.abort->cause() : TextOf(reason);
              CloseTraceThenStop(self);
            });
    return answer;
  }};
}

}  // namespace troupe
