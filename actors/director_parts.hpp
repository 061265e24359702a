// Shared by the parts of the Director: director_actor.cpp (its rounds), director_checkpoints.cpp and
// director_mirrors.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "actors/director_actor.hpp"

namespace troupe {

using DirectorPointer = ActorPointer<Director, DirectorState>;

/// Ends the job with `failure`, or with an earlier one.
void Fail(DirectorPointer self, const Failure& failure);

/// Begins rounds while there is room.
void PumpDirector(DirectorPointer self);

/// Sends Update `update` the norms of the others, unless a mirror holds it back. It is held back since
/// `since_ns`; 0: it was not.
void Apply(DirectorPointer self, std::int64_t round, std::size_t update, std::int64_t since_ns = 0);

// director_mirrors.cpp

/// Begins the mirror that is due, if there is one.
void Mirror(DirectorPointer self);
/// Once all processes hold the state under way, and its step is reported: each drops the state before,
/// and updates that waited go on.
void CompleteMirror(DirectorPointer self);

// director_checkpoints.cpp

/// The state after round `round` is stored as `order` says, while later rounds run. Then calls `then`
/// with what each shard has stored, in the order of rank and stage.
void SaveCopies(DirectorPointer self, std::int64_t round, const SaveOrder& order,
                std::function<void(std::vector<SavedShard> shards)> then);

/// Asynchronous: begins the checkpoint of the round that was begun last, if one is due. No later one
/// has begun: it would change the state.
void SaveBeside(DirectorPointer self);
/// Writes a checkpoint while no round runs, then calls `then`.
void SaveAlone(DirectorPointer self, const std::function<void()>& then);
/// Publishes the checkpoint under way if all its shards are written, and its step is reported.
void PublishSaved(DirectorPointer self);
/// Copies shards that never change, while nothing runs: later their state may be away from the
/// device. Then calls `begin`.
void CopyConstant(DirectorPointer self, const std::function<void()>& begin);

/// Like `Fail`, for an error that answers a request. If the receiver is gone, JobFailed comes.
inline auto OnError(DirectorPointer self) {
  return [self](const caf::error& reason) {
    if (IsReceiverGone(reason)) return RaiseFor(self->state.config.abort, reason);
    Fail(self, FailureOf(reason));
  };
}

/// Calls `call`. If it throws (a full disk), ends the job and returns false.
template <class Call>
bool Try(DirectorPointer self, Call call) {
  try {
    call();
    return true;
  } catch (...) {
    Fail(self, ThrownFailure());
    return false;
  }
}

/// Requests of which all answers are awaited. A failure ends the job instead.
class Requests {
 public:
  /// `then` is called after the last answer. Nodes are not traced: after theirs, pass it through
  /// Untraced.
  Requests(DirectorPointer self, std::function<void()> then)
      : self_(self), state_(std::make_shared<State>()) {
    state_->then = std::move(then);
  }
  /// Returns `then`, which the trace shows in the handling that runs now.
  static std::function<void()> Untraced(std::function<void()> then) {
    return InHandling(CurrentHandling(), std::move(then));
  }

  /// `take(answer)` is called before `then`.
  template <class Answer, class Receiver, class Message, class Take>
  void Ask(const Receiver& receiver, const Message& message, Take take) {
    ++state_->missing;
    self_->request(receiver, caf::infinite, message)
        .then(
            [state = state_, take](const Answer& answer) mutable {
              take(answer);
              state->Arrived();
            },
            OnError(self_));
  }
  template <class Answer, class Receiver, class Message>
  void Ask(const Receiver& receiver, const Message& message) {
    Ask<Answer>(receiver, message, [](const Answer&) {});
  }
  /// No more requests follow: calls `then` if there were none.
  void Close() { state_->Arrived(); }

 private:
  struct State {
    std::function<void()> then;
    std::size_t missing = 1;  ///< Close is one
    void Arrived() {
      if (--missing == 0) then();
    }
  };

  DirectorPointer self_;
  std::shared_ptr<State> state_;
};

/// Sends `command` to every shard of the job. Calls `then(answers)`, in the order of the shards in
/// the configuration, when all have answered.
template <class Answer, class Command, class Then>
void AskShards(DirectorPointer self, const Command& command, Then then) {
  const auto answers = std::make_shared<std::vector<Answer>>();
  Requests requests(self, [answers, then] { then(*answers); });
  for (const auto& [devices, shards] : self->state.config.shards) {
    const std::size_t first = answers->size();
    answers->resize(first + shards.size());
    requests.Ask<FromSet<Answer>>(
        devices, ForShards(shards, command), [answers, first](const FromSet<Answer>& done) {
          std::ranges::copy(done.parts, answers->begin() + static_cast<std::ptrdiff_t>(first));
        });
  }
  requests.Close();
}

}  // namespace troupe
