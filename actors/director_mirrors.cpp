// Mirrors of the job's state in the memory of its processes: when they are due is decided in
// mirror_course.hpp.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "actors/director_parts.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// The files that shards at `places` have stored.
std::vector<std::string> FilesOf(const std::vector<ShardPlace>& places,
                                 const std::vector<SavedShard>& shards) {
  std::vector<std::string> files;
  for (const SavedShard& shard : shards) {
    if (shard.stored.file.empty()) continue;
    const ShardPlace place{shard.rank, shard.stage};
    if (std::ranges::find(places, place) != places.end()) files.push_back(shard.stored.file);
  }
  return files;
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
  const auto then = Requests::Untraced([self, &s] {
    s.mirrors.OnMirrored();
    Mirror(self);  // before an update that changes the next state
    for (const auto& held : std::exchange(s.held_back, {})) {
      Apply(self, held.round, held.update, held.since_ns);
    }
    PumpDirector(self);
  });
  Requests requests(self, then);
  for (const Holder& holder : s.config.holders) requests.Ask<HeldCompleted>(holder, complete);
  requests.Close();
}

void Mirror(DirectorPointer self) {
  DirectorState& s = self->state;
  if (s.config.abort->raised()) return;
  const auto due = s.mirrors.Next();
  if (!due) return;
  SaveOrder order{.folder = "", .step = due->step, .many_disks = true, .in_memory = true};
  order.folder = s.config.checkpoints.held_folder(due->step);
  SaveCopies(self, due->round, order, [self, &s, order](const std::vector<SavedShard>& shards) {
    const auto held = Requests::Untraced([self, &s, order, shards] {
      s.mirrored = {order, shards};
      CompleteMirror(self);
    });
    Requests requests(self, held);
    for (const MirrorPlan::Sent& mirror : s.config.mirrors.sent) {
      HoldMirror hold{order.folder, mirror.process, FilesOf(mirror.shards, shards)};
      if (hold.files.empty()) continue;
      requests.Ask<MirrorHeld>(s.config.holders.at(At(mirror.holder)), hold);
    }
    requests.Close();
  });
}

}  // namespace troupe
