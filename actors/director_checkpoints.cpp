// The checkpoints of a job: when they are due is decided in checkpoint_course.hpp.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/director_parts.hpp"
#include "layout/text.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/mirrors.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// Every shard that stores something writes its file.
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
  const auto published = Requests::Untraced([self, &s, order, then] {
    s.course.OnSaved(NowNs());
    if (!Try(self, [&] { s.config.checkpoints.completed(order.step); })) return;
    const auto& between = s.config.checkpoints.stored_between;
    if (between && !s.last_begun && s.config.rounds(s.next_round)) between();
    then();
  });
  const auto last_disk = Requests::Untraced([self, &s, order, text, published] {
    Requests last(self, published);
    last.Ask<ManifestPublished>(s.config.disk, PublishManifest{order.folder, text, {}});
    last.Close();
  });
  Requests others(self, last_disk);
  std::vector<std::int64_t> steps;
  if (!s.config.apart.empty()) {
    if (!Try(self, [&] { steps = s.config.checkpoints.steps(); })) return;
    steps.push_back(order.step);
  }
  for (const ManifestDisk& disk : s.config.apart) {
    others.Ask<ManifestPublished>(disk, PublishManifest{order.folder, text, steps});
  }
  others.Close();
}

/// The order for a checkpoint of `step`; nothing if its folder cannot be made.
std::optional<SaveOrder> OrderOf(DirectorPointer self, std::int64_t step) {
  const DirectorConfig& config = self->state.config;
  SaveOrder order{.folder = "", .step = step, .many_disks = !config.apart.empty()};
  if (!Try(self, [&] { order.folder = config.checkpoints.folder(step); })) return std::nullopt;
  return order;
}

/// The files that shards have written from copies of their state.
struct SavedCopies {
  std::map<ShardPlace, StoredShard> shards;
  std::vector<SavedShard> made;  ///< mirrors, by replicas

  void AddMade(const std::vector<SavedShard>& more) {
    made.insert(made.end(), more.begin(), more.end());
  }
};

/// Throws if a mirror of `plan` was not made, or differs from the file of the shard itself.
void CheckMade(const SavedCopies& saved, const MirrorPlan& plan) {
  std::map<ShardPlace, int> missing;
  for (const auto& [replica, first] : plan.made) ++missing[{first.rank, replica.second}];
  for (const SavedShard& made : saved.made) {
    const ShardPlace place{made.rank, made.stage};
    --missing[place];
    const StoredShard& stored = saved.shards.at(place);
    const std::string difference = FirstDifference(stored, made.stored);
    if (difference.empty()) continue;
    throw std::runtime_error("the replicas of " + stored.file + " on " + stored.process + " and " +
                             made.stored.process + " hold different values of " + difference +
                             ": one is damaged, or their processors round differently "
                             "(checkpoint.replicas = 0 does not compare them)");
  }
  for (const auto& [place, count] : missing) {
    if (count == 0) continue;
    throw std::logic_error("a mirror of rank " + std::to_string(place.first) + ", stage " +
                           std::to_string(place.second) + " was not made");
  }
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

void SaveCopies(DirectorPointer self, std::int64_t round, const SaveOrder& order,
                std::function<void(std::vector<SavedShard> shards)> then) {
  const DirectorConfig& config = self->state.config;
  const auto saved = std::make_shared<SavedCopies>();
  Requests requests(self, [self, saved, in_memory = order.in_memory, then = std::move(then)] {
    const MirrorPlan& plan = self->state.config.mirrors;
    if (in_memory && !Try(self, [&] { CheckMade(*saved, plan); })) return;
    std::vector<SavedShard> all;
    for (auto& [place, stored] : saved->shards) {
      all.push_back({place.first, place.second, std::move(stored)});
    }
    then(std::move(all));
  });
  for (const Update& update : config.updates) {
    requests.Ask<StateSaved>(update, SaveState{round, order}, [saved](const StateSaved& state) {
      for (const SavedShard& shard : state.shards) {
        saved->shards[{shard.rank, shard.stage}] = shard.stored;
      }
      saved->AddMade(state.made);
    });
  }
  // The copies of shards that never change were made when the job began.
  const SaveShard save{.order = order, .round = round + 1, .copied = true};
  for (const auto& [devices, places] : config.constant_shards) {
    requests.Ask<FromSet<ShardStored>>(
        devices, ForShards(places, save),
        [saved, places = places](const FromSet<ShardStored>& answer) {
          for (std::size_t i = 0; i < answer.parts.size(); ++i) {
            saved->shards[places[i]] = answer.parts[i].stored;
            saved->AddMade(answer.parts[i].made);
          }
        });
  }
  requests.Close();
}

void PublishSaved(DirectorPointer self) {
  DirectorState& s = self->state;
  if (!s.saving || !s.saving->shards || s.course.steps_done() < s.saving->order.step) return;
  if (std::exchange(s.saving->is_publishing, true)) return;
  Publish(self, s.saving->order, *s.saving->shards, [self, &s] {
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
  s.saving = {.order = *order};
  SaveCopies(self, s.next_round - 1, *order, [self, &s](std::vector<SavedShard> shards) {
    s.saving->shards = std::move(shards);
    PublishSaved(self);
  });
}

void CopyConstant(DirectorPointer self, const std::function<void()>& begin) {
  const DirectorConfig& config = self->state.config;
  const bool copies =
      (config.checkpoints.async && config.checkpoints.folder) || self->state.mirrors.mirrors();
  if (!copies || config.constant_shards.empty()) return begin();
  Requests requests(self, begin);
  for (const auto& [devices, shards] : config.constant_shards) {
    requests.Ask<FromSet<StateCopied>>(devices, ForShards(shards, CopyState{}));
  }
  requests.Close();
}

}  // namespace troupe
