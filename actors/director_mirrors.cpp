// Mirrors of the job's state in the memory of its processes: when they are due is decided in
// mirror_course.hpp.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/director_parts.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// Sends `request(i)` for each i below `count`, and calls `then` when all are answered. Nodes are not
/// traced: the trace shows `then` in the handling of the message before.
template <class Answer, class Request>
void AskHolders(DirectorPointer self, std::size_t count, Request request,
                std::function<void()> then) {
  auto after = InHandling(CurrentHandling(), std::move(then));
  if (count == 0) return after();
  const auto missing = std::make_shared<std::size_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [holder, message] = request(i);
    self->request(holder, caf::infinite, message)
        .then(
            [missing, after](const Answer&) mutable {
              if (--*missing == 0) after();
            },
            OnError(self));
  }
}

}  // namespace

void CompleteMirror(DirectorPointer self) {
  DirectorState& s = self->state;
  if (!s.mirrored || s.course.steps_done() < s.mirrored->order.step) return;
  const DirectorState::Mirrored done = *std::exchange(s.mirrored, std::nullopt);
  CompleteHeld complete{done.order.folder, ""};
  const bool has_manifest = Try(self, [&] {
    complete.manifest = s.config.checkpoints.manifest(done.order.step, done.shards);
  });
  if (!has_manifest) return;
  const auto request = [&](std::size_t i) { return std::pair(s.config.holders[i], complete); };
  AskHolders<HeldCompleted>(self, s.config.holders.size(), request, [self, &s] {
    s.mirrors.OnMirrored();
    Mirror(self);  // before an update that changes the next state
    for (const auto& held : std::exchange(s.held_back, {})) {
      Apply(self, held.round, held.update, held.since_ns);
    }
    PumpDirector(self);
  });
}

void Mirror(DirectorPointer self) {
  DirectorState& s = self->state;
  if (s.config.abort->raised()) return;
  const auto due = s.mirrors.Next();
  if (!due) return;
  SaveOrder order{.folder = "", .step = due->step, .many_disks = true, .in_memory = true};
  order.folder = s.config.checkpoints.held_folder(due->step);
  SaveCopies(self, due->round, order, [self, &s, order](const std::vector<SavedShard>& shards) {
    const auto request = [&s, &order](std::size_t i) {
      const MirrorOf& mirror = s.config.mirrors[i];
      return std::pair(s.config.holders.at(At(mirror.holder)),
                       HoldMirror{order.folder, mirror.process});
    };
    AskHolders<MirrorHeld>(self, s.config.mirrors.size(), request, [self, &s, order, shards] {
      s.mirrored = {order, shards};
      CompleteMirror(self);
    });
  });
}

}  // namespace troupe
