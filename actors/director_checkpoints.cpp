// The checkpoints of a job: when they are due is decided in checkpoint_course.hpp.
#include <chrono>
#include <optional>
#include <utility>

#include "actors/director_parts.hpp"
#include "layout/text.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// Every shard writes its file.
template <class Then>
void SaveShards(DirectorPointer self, const SaveOrder& order, Then then) {
  const DirectorState& s = self->state;
  const auto collect = [&s, then](const std::vector<ShardStored>& stored) {
    std::vector<SavedShard> saved;
    for (const auto& [devices, shards] : s.config.shards) {
      for (const auto& [rank, stage] : shards) {
        saved.push_back({rank, stage, stored.at(saved.size()).stored});
      }
    }
    then(saved);
  };
  AskShards<ShardStored>(self, SaveShard{.order = order, .round = s.next_round}, collect);
}

/// All shards are written: the manifest makes them a checkpoint, on the disk of process 0 last. Then
/// calls `then`.
void Publish(DirectorPointer self, const SaveOrder& order, const std::vector<SavedShard>& shards,
             const std::function<void()>& then) {
  DirectorState& s = self->state;
  std::string text;
  if (!Try(self, [&] { text = s.config.checkpoints.manifest(order.step, shards); })) return;
  // The trace shows all that follows in the handling of the last shard's answer: Nodes are not traced.
  const auto in_handling = [](auto call) { return InHandling(CurrentHandling(), std::move(call)); };
  auto published = in_handling([self, &s, order, then] {
    s.course.OnSaved(NowNs());
    if (Try(self, [&] { s.config.checkpoints.completed(order.step); })) then();
  });
  auto complete = in_handling([self, &s, order, text, published] {
    self->request(s.config.disk, caf::infinite, PublishManifest{order.folder, text, {}})
        .then([published](const ManifestPublished&) mutable { published(); }, OnError(self));
  });
  s.publishing = s.config.apart.size();
  if (s.publishing == 0) return complete();
  std::vector<std::int64_t> steps;
  if (!Try(self, [&] { steps = s.config.checkpoints.steps(); })) return;
  steps.push_back(order.step);
  for (const ManifestDisk& disk : s.config.apart) {
    self->request(disk, caf::infinite, PublishManifest{order.folder, text, steps})
        .then(
            [&s, complete](const ManifestPublished&) mutable {
              if (--s.publishing == 0) complete();
            },
            OnError(self));
  }
}

/// The order for a checkpoint of `step`; nothing if its folder cannot be made.
std::optional<SaveOrder> OrderOf(DirectorPointer self, std::int64_t step) {
  const DirectorConfig& config = self->state.config;
  SaveOrder order{.folder = "", .step = step, .many_disks = !config.apart.empty()};
  if (!Try(self, [&] { order.folder = config.checkpoints.folder(step); })) return std::nullopt;
  return order;
}

/// Some shards of the checkpoint under way are written.
void OnSaved(DirectorPointer self, const std::vector<SavedShard>& shards) {
  DirectorState::Saving& saving = *self->state.saving;
  for (const SavedShard& shard : shards) saving.shards[{shard.rank, shard.stage}] = shard.stored;
  --saving.missing;
  PublishSaved(self);
}

/// Writes the copies of shards that never change, which were made when the job began.
void SaveConstant(DirectorPointer self, const LockStep& devices,
                  const std::vector<std::pair<int, int>>& shards, const SaveShard& save) {
  const auto saved = [self, shards](const FromSet<ShardStored>& stored) {
    std::vector<SavedShard> all;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      all.push_back({shards[i].first, shards[i].second, stored.parts[i].stored});
    }
    OnSaved(self, all);
  };
  self->request(devices, caf::infinite, ForShards(shards, save)).then(saved, OnError(self));
}

/// Tells the user that a checkpoint is due although another is still being written.
void NoteLate(DirectorPointer self, std::int64_t now_ns) {
  const DirectorState& s = self->state;
  const auto seconds = std::chrono::nanoseconds(now_ns - s.course.saving_since_ns());
  Try(self, [&] {
    s.config.observer->OnWarning(
        "the checkpoint of step " + std::to_string(s.course.latest_step()) +
        " comes later: that of step " + std::to_string(s.course.saving_step()) +
        " is still being written, for " + InTenths(seconds));
  });
}

}  // namespace

void PublishSaved(DirectorPointer self) {
  DirectorState& s = self->state;
  if (!s.saving || s.saving->missing > 0 || s.course.steps_done() < s.saving->order.step) return;
  if (std::exchange(s.saving->is_publishing, true)) return;
  std::vector<SavedShard> all;
  for (auto& [place, stored] : s.saving->shards) {
    all.push_back({place.first, place.second, std::move(stored)});
  }
  Publish(self, s.saving->order, all, [self, &s] {
    s.saving.reset();
    PumpDirector(self);
  });
}

void SaveAlone(DirectorPointer self, const std::function<void()>& then) {
  DirectorState& s = self->state;
  const auto order = OrderOf(self, s.course.steps_done());
  if (!order) return;
  s.storing = true;
  s.course.OnSaving(order->step, NowNs());
  SaveShards(self, *order, [self, &s, order, then](const std::vector<SavedShard>& shards) {
    Publish(self, *order, shards, [&s, then] {
      s.storing = false;
      then();
    });
  });
}

void SaveBeside(DirectorPointer self) {
  DirectorState& s = self->state;
  const std::int64_t now_ns = NowNs();
  const auto next = s.course.BeforeNext(now_ns);
  if (next == CheckpointCourse::Next::kLate) return NoteLate(self, now_ns);
  if (next == CheckpointCourse::Next::kNothing) return;
  const auto order = OrderOf(self, s.course.latest_step());
  if (!order) return;
  s.course.OnSaving(order->step, now_ns);
  s.saving = {.order = *order,
              .missing = s.config.updates.size() + s.config.constant_shards.size(),
              .shards = {}};
  const std::int64_t round = s.next_round - 1;
  for (const Update& update : s.config.updates) {
    self->request(update, caf::infinite, SaveState{round, *order})
        .then([self](const StateSaved& saved) { OnSaved(self, saved.shards); }, OnError(self));
  }
  for (const auto& [devices, shards] : s.config.constant_shards) {
    SaveConstant(self, devices, shards, {.order = *order, .round = round + 1, .copied = true});
  }
}

void CopyConstant(DirectorPointer self, const std::function<void()>& begin) {
  const DirectorConfig& config = self->state.config;
  const bool copies = config.checkpoints.async && config.checkpoints.folder;
  if (!copies || config.constant_shards.empty()) return begin();
  const auto missing = std::make_shared<std::size_t>(config.constant_shards.size());
  for (const auto& [devices, shards] : config.constant_shards) {
    self->request(devices, caf::infinite, ForShards(shards, CopyState{}))
        .then(
            [missing, begin](const FromSet<StateCopied>&) {
              if (--*missing == 0) begin();
            },
            OnError(self));
  }
}

}  // namespace troupe
