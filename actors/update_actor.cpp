#include "actors/update_actor.hpp"

#include <algorithm>
#include <cmath>

#include "modules/gradient_clip.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

using UpdatePointer = ActorPointer<Update, UpdateState>;
using Progress = UpdateState::Progress;

void Pump(UpdatePointer self);

/// Sends `command` to every shard and calls `then` when all have answered.
template <class Answer, class Command, class Then>
void SendToShards(UpdatePointer self, Command command, Then then) {
  UpdateState& s = self->state;
  command.round = s.round->round;
  Ask(self, s.config.devices, ForShards(s.config.shards, command),
      [self, &s, then](const FromSet<Answer>& done) {
        for (const auto& part : done.parts) s.busy_ns += part.busy_ns;
        then(done);
        Pump(self);
      });
}

void Reduce(UpdatePointer self) {
  UpdateState& s = self->state;
  s.progress = Progress::kReducing;
  const auto then = [&s](const FromSet<GradientsReduced>& done) {
    SquaredNorm norm{.round = s.round->round};
    for (const auto& shard : done.parts) {
      norm.value += shard.result.squared_norm;
      for (const auto& [part, squared] : shard.result.squared_norms) norm.parts[part] += squared;
    }
    s.squared_norm = norm.value;
    s.progress = Progress::kReduced;
    s.reduced_ns = NowNs();
    s.norm.deliver(norm);
  };
  SendToShards<GradientsReduced>(self, ReduceGradients{.place = {s.round->step.step}}, then);
}

/// The factor of the gradients, once it is known. Never a non-finite one: then the Director ends
/// the job.
std::optional<double> Coefficient(const UpdateState& s) {
  if (!s.round->wait) return 1.0;
  const auto found = s.applying.find(s.round->round);
  if (found == s.applying.end()) return std::nullopt;
  const ApplyUpdate& apply = found->second.apply;
  std::vector<double> norms = apply.squared_norms;
  norms.at(static_cast<std::size_t>(s.round->place)) = s.squared_norm;
  const GradientClip clip = ClipOf(norms, apply.clip_norm);
  return std::isfinite(clip.norm) ? std::optional(clip.coefficient) : std::nullopt;
}

/// Every shard stores the copy of its state, or a mirror of another's, or nothing.
void SaveCopy(UpdatePointer self, const UpdateState::Saving& saving) {
  UpdateState& s = self->state;
  const SaveShard save{.order = saving.order, .round = s.copied_round + 1, .copied = true};
  const auto saved = [&s, promise = saving.promise](const FromSet<ShardStored>& stored) mutable {
    StateSaved all;
    for (std::size_t i = 0; i < stored.parts.size(); ++i) {
      const auto& [rank, stage] = s.config.shards[i];
      all.shards.push_back({rank, stage, stored.parts[i].stored});
      const auto& made = stored.parts[i].made;
      all.made.insert(all.made.end(), made.begin(), made.end());
    }
    promise.deliver(std::move(all));
  };
  Ask(self, s.config.devices, ForShards(s.config.shards, save), saved);
}

/// Every shard copies its state, unless it has, and stores the copy.
void Save(UpdatePointer self) {
  UpdateState& s = self->state;
  if (s.copied_round == s.stepped_round) {
    while (auto next = s.saving.extract(s.stepped_round)) SaveCopy(self, next.mapped());
    return;
  }
  s.copying = true;
  const CopyState copy{.step = s.saving.find(s.stepped_round)->second.order.step,
                       .round = s.stepped_round + 1};
  Ask(self, s.config.devices, ForShards(s.config.shards, copy),
      [self, &s](const FromSet<StateCopied>&) {
        s.copying = false;
        s.copied_round = s.stepped_round;
        Pump(self);
      });
}

void Step(UpdatePointer self, double coefficient) {
  UpdateState& s = self->state;
  s.progress = Progress::kStepping;
  UpdateParameters update{.step = s.round->step};
  update.step.clip_coefficient = coefficient;
  const std::int64_t now_ns = NowNs();
  const std::int64_t held_since_ns = std::exchange(s.held_since_ns, 0);
  if (held_since_ns != 0) update.held_ns = now_ns - held_since_ns;
  // The later of two that held it back ends now. A mirror held it back only since the gradients were
  // there.
  const auto apply = s.applying.find(s.round->round);
  if (apply != s.applying.end()) {
    const std::int64_t mirror_ns = std::min(apply->second.apply.held_ns, now_ns - s.reduced_ns);
    update.held_ns = std::max(update.held_ns, mirror_ns);
  }
  SendToShards<ParametersUpdated>(self, update, [&s](const FromSet<ParametersUpdated>&) {
    s.progress = Progress::kStepped;
    s.stepped_round = s.round->round;
    for (auto& [replica, promise] : std::exchange(s.replicas, {})) {
      promise.deliver(Updated{s.round->round});
    }
  });
}

/// The table in the header. The only place that starts work.
void Pump(UpdatePointer self) {
  UpdateState& s = self->state;
  if (!s.copying && s.saving.contains(s.stepped_round)) Save(self);
  if (s.progress == Progress::kStepped && s.applying.contains(s.round->round)) {
    auto done = s.applying.extract(s.round->round);
    done.mapped().promise.deliver(UpdateDone{s.round->round, s.busy_ns});
    s.round.reset();
    s.busy_ns = 0;
    s.progress = Progress::kBackward;
  }
  if (!s.round && !s.next.empty()) {
    s.round = s.next.front().first;
    s.norm = s.next.front().second;
    s.next.pop_front();
  }
  const bool any_done = !s.replicas.empty();
  if (s.progress == Progress::kBackward && s.round && any_done &&
      s.round->round != s.backwards_round) {
    return Fail(self, MakeFailure(s.config.name + ": expected the gradients of round " +
                                  std::to_string(s.round->round) + ", got those of round " +
                                  std::to_string(s.backwards_round)));
  }
  const bool all_done = s.replicas.size() == s.config.replicas.size();
  if (s.progress == Progress::kBackward && s.round && all_done) return Reduce(self);
  if (s.progress != Progress::kReduced) return;
  const auto coefficient = Coefficient(s);
  if (!coefficient) return;
  if (!s.copying) return Step(self, *coefficient);
  if (s.held_since_ns == 0) s.held_since_ns = NowNs();
}

/// The requests of this round that must arrive before the next row of the table holds.
ExpectedWaits ExpectedBy(const UpdateState& s) {
  ExpectedWaits expected;
  const auto expect = [&](const RequestKind& kind, const ActorId& from) {
    const std::int64_t round = s.round ? s.round->round : s.backwards_round;
    expected.push_back({.kind = kind, .number = round, .from = from});
  };
  if (s.progress == Progress::kReduced || s.progress == Progress::kStepped) {
    expect(KindOf<ApplyUpdate>(), DirectorActor());
  }
  const bool begun = s.round || !s.replicas.empty();
  if (s.progress != Progress::kBackward || !begun) return expected;
  if (!s.round) expect(KindOf<UpdateRound>(), DirectorActor());
  for (const ActorId& replica : s.config.replicas) {
    if (s.replicas.contains({replica.stage, replica.replica})) continue;
    expect(KindOf<BackwardsDone>(), replica);
  }
  return expected;
}

}  // namespace

Update::behavior_type RunUpdate(UpdatePointer self, UpdateConfig config) {
  UpdateState& s = self->state;
  s.config = std::move(config);
  self->Expects([&s] { return ExpectedBy(s); });
  return {
      [self, &s](const BackwardsDone& done) -> caf::result<Updated> {
        auto promise = self->make_response_promise<Updated>();
        s.replicas[{done.stage, done.dp}] = promise;
        s.backwards_round = done.round;
        Pump(self);
        return promise;
      },
      [self, &s](const UpdateRound& round) -> caf::result<SquaredNorm> {
        auto promise = self->make_response_promise<SquaredNorm>();
        s.next.emplace_back(round, promise);
        Pump(self);
        return promise;
      },
      [self, &s](const SaveState& save) -> caf::result<StateSaved> {
        const bool is_changing = s.progress == Progress::kStepping &&
                                 save.round == s.stepped_round && save.round != s.copied_round;
        if (save.round < s.stepped_round || is_changing) {
          auto late = MakeFailure(s.config.name + ": the state after round " +
                                  std::to_string(save.round) + " is gone");
          Fail(self, late);
          return late;
        }
        auto promise = self->make_response_promise<StateSaved>();
        s.saving.emplace(save.round, UpdateState::Saving{save.order, promise});
        Pump(self);
        return promise;
      },
      [self, &s](const ApplyUpdate& apply) -> caf::result<UpdateDone> {
        auto promise = self->make_response_promise<UpdateDone>();
        s.applying[apply.round] = {apply, promise};
        Pump(self);
        return promise;
      },
  };
}

}  // namespace troupe
