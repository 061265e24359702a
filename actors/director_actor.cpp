#include "actors/director_actor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "layout/text.hpp"
#include "modules/gradient_clip.hpp"
#include "modules/learning_rate.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

using DirectorPointer = ActorPointer<Director, DirectorState>;
using OpenRound = DirectorState::OpenRound;

void Pump(DirectorPointer self);

/// Ends the job with `failure`, or with an earlier one.
void Fail(DirectorPointer self, const Failure& failure) {
  DirectorState& s = self->state;
  s.config.abort->Raise(failure);
  if (s.done.pending()) s.done.deliver(JobDone{s.config.abort->failure()});
  self->RefuseAll(MakeFailure(s.config.abort->failure()));
}

/// Like `Fail`, for an error that answers a request.
auto OnError(DirectorPointer self) {
  return [self](const caf::error& reason) { Fail(self, FailureOf(reason)); };
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

/// Sends `command` to every shard of the job. Calls `then(answers)`, in the order of the shards in
/// the configuration, when all have answered; a failure ends the job instead.
template <class Answer, class Command, class Then>
void AskShards(DirectorPointer self, const Command& command, Then then) {
  struct Gather {
    std::size_t missing = 0;
    std::vector<Answer> answers;
  };
  const auto gather = std::make_shared<Gather>();
  gather->missing = self->state.config.shards.size();
  for (const auto& [devices, shards] : self->state.config.shards) {
    const std::size_t first = gather->answers.size();
    gather->answers.resize(first + shards.size());
    self->request(devices, caf::infinite, ForShards(shards, command))
        .then(
            [gather, then, first](const FromSet<Answer>& done) {
              for (std::size_t i = 0; i < done.parts.size(); ++i) {
                gather->answers.at(first + i) = done.parts[i];
              }
              if (--gather->missing == 0) then(gather->answers);
            },
            OnError(self));
  }
}

/// Gathers one kind of tensor from every shard. Blocks while it fetches those of other processes:
/// the Director has its own thread.
template <class Then>
void InspectShards(DirectorPointer self, const Inspect& ask, Then then) {
  AskShards<Inspected>(self, ask, [self, then](const std::vector<Inspected>& answers) {
    std::vector<TensorPiece> pieces;
    const bool fetched = Try(self, [&] {
      for (const Inspected& answer : answers) {
        for (TensorPiece piece : answer.pieces) {
          piece.value = self->state.config.tensors->FetchNow(piece.value, piece.name);
          pieces.push_back(std::move(piece));
        }
      }
    });
    if (fetched) then(pieces);
  });
}

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

/// Adds up the losses of all stages, and of every sink over its replicas.
void AddLosses(OpenRound& done, const std::vector<std::string>& sinks) {
  RoundResult& result = done.result;
  for (std::size_t stage = 0; stage < done.losses.size(); ++stage) {
    result.loss += done.losses[stage];
    const std::string& module = sinks[stage];
    if (module.empty()) continue;
    auto sink = std::ranges::find(result.sinks, module, &SinkLoss::module);
    if (sink == result.sinks.end()) sink = result.sinks.insert(sink, SinkLoss{module, {}});
    sink->sums += done.losses[stage];
  }
}

/// Whether the steps between checkpoints are over at the end of this round.
bool IsDueBySteps(const DirectorState& s, const Round& round) {
  const Checkpoints& checkpoints = s.config.checkpoints;
  return checkpoints.folder && checkpoints.every > 0 && round.train &&
         (round.step + 1) % checkpoints.every == 0;
}

/// Whether a checkpoint follows this round before any other may begin.
bool IsDueAlone(const DirectorState& s, const Round& round) {
  return !s.config.checkpoints.async && IsDueBySteps(s, round);
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
    s.checkpoint_at = order.step;
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

/// A checkpoint while no round runs.
void Checkpoint(DirectorPointer self, const std::function<void()>& then) {
  DirectorState& s = self->state;
  const auto order = OrderOf(self, s.steps_done);
  if (!order) return;
  s.storing = true;
  s.draining = s.save_asked = s.save_due = false;
  SaveShards(self, *order, [self, &s, order, then](const std::vector<SavedShard>& shards) {
    Publish(self, *order, shards, [&s, then] {
      s.storing = false;
      s.stored_ns = NowNs();
      then();
    });
  });
}

/// Publishes the checkpoint under way if all its shards are written, and its step is reported.
void PublishSaved(DirectorPointer self) {
  DirectorState& s = self->state;
  if (!s.saving || s.saving->missing > 0 || s.steps_done < s.saving->order.step) return;
  if (std::exchange(s.saving->is_publishing, true)) return;
  std::vector<SavedShard> all;
  for (auto& [place, stored] : s.saving->shards) {
    all.push_back({place.first, place.second, std::move(stored)});
  }
  Publish(self, s.saving->order, all, [self, &s] {
    s.saving.reset();
    Pump(self);
  });
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

/// Tells the user, once, that a checkpoint is due although another is still being written.
void NoteLate(DirectorPointer self, std::int64_t step) {
  DirectorState::Saving& saving = *self->state.saving;
  if (std::exchange(saving.is_late, true)) return;
  const auto seconds = std::chrono::nanoseconds(NowNs() - saving.begun_ns);
  Try(self, [&] {
    self->state.config.observer->OnWarning(
        "the checkpoint of step " + std::to_string(step) + " comes later: that of step " +
        std::to_string(saving.order.step) + " is still being written, for " + InTenths(seconds));
  });
}

/// Begins the checkpoint of the round that was begun last, if one is due. No later one has begun: it
/// would change the state.
void SaveBeside(DirectorPointer self) {
  DirectorState& s = self->state;
  const Checkpoints& checkpoints = s.config.checkpoints;
  if (!s.unsaved || !checkpoints.folder || !checkpoints.async) return;
  const Round round = *std::exchange(s.unsaved, std::nullopt);
  const std::int64_t now_ns = NowNs();
  const bool is_due = s.save_due || s.save_asked || IsDueBySteps(s, round) ||
                      IsDueByTime(checkpoints, s.stored_ns, now_ns);
  if (!is_due) return;
  if (s.saving) {
    s.save_due = true;
    return NoteLate(self, round.step + 1);
  }
  const auto made = OrderOf(self, round.step + 1);
  if (!made) return;
  const SaveOrder& order = *made;
  s.save_due = s.save_asked = false;
  s.stored_ns = now_ns;
  s.saving = {.order = order,
              .begun_ns = now_ns,
              .missing = s.config.updates.size() + s.config.constant_shards.size(),
              .shards = {}};
  for (const Update& update : s.config.updates) {
    self->request(update, caf::infinite, SaveState{round.number, order})
        .then([self](const StateSaved& saved) { OnSaved(self, saved.shards); }, OnError(self));
  }
  for (const auto& [devices, shards] : s.config.constant_shards) {
    SaveConstant(self, devices, shards,
                 {.order = order, .round = round.number + 1, .copied = true});
  }
}

void Complete(DirectorPointer self, std::int64_t number) {
  DirectorState& s = self->state;
  OpenRound done = std::move(s.open.at(number));
  s.open.erase(number);
  AddLosses(done, s.config.sinks);
  const std::int64_t now = NowNs();
  done.result.seconds = static_cast<double>(now - s.completed_ns) * 1e-9;
  s.completed_ns = now;
  if (!Try(self, [&] { s.config.observer->OnRound(done.result); })) return;
  if (done.result.round.train) s.steps_done = done.result.round.step + 1;
  PublishSaved(self);
  if (IsDueAlone(s, done.result.round)) return Checkpoint(self, [self] { Pump(self); });
  const bool due = s.save_asked || IsDueByTime(s.config.checkpoints, s.stored_ns, now);
  if (done.result.round.train && due && !s.config.checkpoints.async) s.draining = true;
  Pump(self);
}

/// Shows parameters and moments after the step, one kind after the other, then completes.
void ShowUpdated(DirectorPointer self, std::int64_t number, std::vector<TensorKind> kinds) {
  if (kinds.empty()) return Complete(self, number);
  const TensorKind kind = kinds.back();
  kinds.pop_back();
  InspectShards(self, {.kind = kind}, [=](const std::vector<TensorPiece>& pieces) {
    const Round& round = self->state.open.at(number).result.round;
    const bool shown =
        Try(self, [&] { self->state.config.observer->OnUpdated(round, kind, pieces); });
    if (shown) ShowUpdated(self, number, kinds);
  });
}

/// "report of round 3 from stage language.s0 dp1".
std::string OldestUnanswered(DirectorPointer self) {
  std::vector<SentRequest> of_rounds;
  std::ranges::copy_if(
      self->unanswered(), std::back_inserter(of_rounds), [](const SentRequest& sent) {
        return sent.kind.words.unit == WaitUnit::kRound && *sent.kind.type != typeid(SaveState);
      });
  const SentRequest& sent = *std::ranges::min_element(of_rounds, {}, &SentRequest::number);
  Wait wait = InWords(sent, [](const caf::actor_addr&) { return ActorKey(); });
  wait.whom = ToString(self->state.config.names.at(sent.to));
  return WithoutArticle(wait);
}

void CheckComplete(DirectorPointer self, std::int64_t number) {
  DirectorState& s = self->state;
  const OpenRound& open = s.open.at(number);
  if (!open.missing_reports.empty() || !open.missing_updates.empty()) return;
  // Actors answer in the order of the rounds: the missing answers of an older round will not come.
  if (s.open.begin()->first < number) {
    return Fail(self, ToString(DirectorActor()) + " has no " + OldestUnanswered(self) +
                          ", but all of round " + std::to_string(number) +
                          ": a message between them is lost");
  }
  if (!s.config.inspect || !open.result.round.train) return Complete(self, number);
  ShowUpdated(self, number,
              {TensorKind::kSecondMoment, TensorKind::kFirstMoment, TensorKind::kParameter});
}

/// Sends Update `u` the norms of the others.
void Apply(DirectorPointer self, std::int64_t number, std::size_t u) {
  DirectorState& s = self->state;
  OpenRound& open = s.open.at(number);
  if (!open.applied.insert(u).second) return;
  self->request(s.config.updates[u], caf::infinite,
                ApplyUpdate{number, open.squared_norms, s.config.optimizer.clip_norm})
      .then(
          [self, u, number](const UpdateDone& done) {
            OpenRound& updated = self->state.open.at(number);
            updated.result.busy_seconds += static_cast<double>(done.busy_ns) * 1e-9;
            updated.missing_updates.erase(u);
            CheckComplete(self, number);
          },
          OnError(self));
}

void ApplyAll(DirectorPointer self, std::int64_t number) {
  for (std::size_t u = 0; u < self->state.config.updates.size(); ++u) Apply(self, number, u);
}

/// The last Update to reduce has its own norm and lacks those of the others. With `inspect` it
/// waits: the observer gets all gradients before any parameter steps.
void ApplyLast(DirectorPointer self, std::int64_t number) {
  DirectorState& s = self->state;
  const auto& missing = s.open.at(number).missing_norms;
  if (missing.size() == 1 && !s.config.inspect) Apply(self, number, *missing.begin());
}

/// The gradient norm of each module and projector, of the shares of all updates.
std::map<std::string, double> PartNorms(const std::vector<std::map<std::string, double>>& shares) {
  std::map<std::string, double> norms;
  for (const auto& share : shares) {
    for (const auto& [part, squared] : share) norms[part] += squared;
  }
  for (auto& [part, norm] : norms) norm = std::sqrt(norm);
  return norms;
}

/// All squared norms have arrived: computes the coefficient.
void OnNorms(DirectorPointer self, std::int64_t number) {
  DirectorState& s = self->state;
  OpenRound& open = s.open.at(number);
  RoundResult& result = open.result;
  const GradientClip clip = ClipOf(open.squared_norms, s.config.optimizer.clip_norm);
  result.gradient_norm = clip.norm;
  result.clip_coefficient = clip.coefficient;
  result.gradient_norms = PartNorms(open.part_norms);
  if (!std::isfinite(result.gradient_norm)) {
    return Fail(self, RoundName(result.round) + ": the gradient norm is " +
                          std::to_string(result.gradient_norm));
  }
  if (!s.config.inspect) return ApplyAll(self, number);
  InspectShards(self, {.kind = TensorKind::kGradient}, [=](const std::vector<TensorPiece>& pieces) {
    const Round& round = self->state.open.at(number).result.round;
    const bool shown = Try(self, [&] { self->state.config.observer->OnGradients(round, pieces); });
    if (shown) ApplyAll(self, number);
  });
}

void BeginUpdates(DirectorPointer self, const Round& round) {
  DirectorState& s = self->state;
  UpdateRound begin;
  begin.round = round.number;
  begin.step = {round.step + 1, 1.0,
                ScheduleFactor(s.config.optimizer, round.step, s.config.steps)};
  begin.wait = s.config.optimizer.clip_norm > 0.0 || s.config.inspect;
  for (std::size_t u = 0; u < s.config.updates.size(); ++u) {
    begin.place = static_cast<int>(u);
    self->request(s.config.updates[u], caf::infinite, begin)
        .then(
            [self, u, number = round.number](const SquaredNorm& norm) {
              OpenRound& open = self->state.open.at(number);
              open.squared_norms[u] = norm.value;
              open.part_norms[u] = norm.parts;
              open.missing_norms.erase(u);
              ApplyLast(self, number);
              if (open.missing_norms.empty()) OnNorms(self, number);
            },
            OnError(self));
  }
  ApplyLast(self, round.number);
}

template <class T>
std::set<std::size_t> AllOf(const std::vector<T>& all) {
  std::set<std::size_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) places.insert(places.end(), i);
  return places;
}

void Begin(DirectorPointer self, Round round) {
  DirectorState& s = self->state;
  RoundCounts counts;
  if (!Try(self, [&] { counts = s.config.source->Count(round); })) return;
  const auto inverse = [](std::int64_t n) { return n > 0 ? 1.0 / static_cast<double>(n) : 0.0; };
  round.loss_scale = inverse(counts.labels);
  round.token_scale = inverse(counts.tokens);
  round.sample_scale = inverse(counts.samples);
  OpenRound& open = s.open[round.number];
  open.result.round = round;
  open.missing_reports = AllOf(s.config.stages);
  open.losses.resize(s.config.stages.size());
  if (round.train) {
    open.missing_norms = open.missing_updates = AllOf(s.config.updates);
    open.squared_norms.resize(s.config.updates.size());
    open.part_norms.resize(s.config.updates.size());
  }
  // Phases first: they must know the round before its first rows reach them.
  for (const Phase& phase : s.config.phases) self->send(phase, RoundBegin{round});
  for (const Feed& feed : s.config.feeds) self->send(feed, RoundBegin{round});
  if (round.train) {
    BeginUpdates(self, round);
    s.unsaved = round;
  }
  for (std::size_t i = 0; i < s.config.stages.size(); ++i) {
    self->request(s.config.stages[i], caf::infinite, RoundBegin{round})
        .then(
            [self, i](const StageReport& report) {
              OpenRound& reported = self->state.open.at(report.round);
              reported.losses[i] = report.loss;
              reported.result.replaced.insert(report.replaced.begin(), report.replaced.end());
              reported.result.busy_seconds += static_cast<double>(report.busy_ns) * 1e-9;
              reported.missing_reports.erase(i);
              CheckComplete(self, report.round);
            },
            OnError(self));
  }
}

/// All rounds are complete: hands out the final parameters, then answers RunJob.
void Finish(DirectorPointer self) {
  DirectorState& s = self->state;
  if (s.saving || std::exchange(s.finishing, true)) return;
  const bool is_due = s.stopped_early || s.save_asked || s.save_due;
  if (is_due && s.config.checkpoints.folder && s.steps_done > 0 &&
      s.checkpoint_at != s.steps_done) {
    s.finishing = false;
    return Checkpoint(self, [self] { Finish(self); });
  }
  const Inspect parameters{.kind = TensorKind::kParameter, .stored_only = true};
  AskShards<Inspected>(self, parameters, [self](const std::vector<Inspected>& answers) {
    std::vector<TensorPiece> pieces;
    for (const Inspected& answer : answers) {
      pieces.insert(pieces.end(), answer.pieces.begin(), answer.pieces.end());
    }
    const auto fetch = [self](const TensorPiece& piece) {
      return self->state.config.tensors->FetchNow(piece.value, piece.name);
    };
    if (Try(self, [&] { self->state.config.observer->OnFinished(pieces, fetch); })) {
      self->state.done.deliver(JobDone{});
    }
  });
}

/// Begins rounds while there is room. The only place that does.
void Pump(DirectorPointer self) {
  DirectorState& s = self->state;
  if (s.storing) return;
  if (s.draining && s.open.empty() && !s.last_begun) {
    return Checkpoint(self, [self] { Pump(self); });
  }
  const int ahead = s.config.inspect ? 0 : s.config.rounds_ahead;
  const auto due = [&s] {
    return std::any_of(s.open.begin(), s.open.end(),
                       [&](const auto& open) { return IsDueAlone(s, open.second.result.round); });
  };
  while (!self->failed() && !s.last_begun && !s.draining && !due() &&
         static_cast<int>(s.open.size()) <= ahead) {
    const auto round = s.config.rounds(s.next_round);
    SaveBeside(self);
    if (!round) {
      s.last_begun = true;
      break;
    }
    ++s.next_round;
    Begin(self, *round);
  }
  if (s.last_begun && s.open.empty() && !s.config.abort->raised()) Finish(self);
}

/// Copies shards that never change, while nothing runs: later their state may be away from the
/// device. Then calls `begin`.
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

/// Loads the checkpoint to resume from, if there is one, and begins.
void Start(DirectorPointer self) {
  DirectorState& s = self->state;
  const auto begin = [self] {
    self->state.storing = false;
    self->state.completed_ns = self->state.stored_ns = NowNs();
    Pump(self);
  };
  const Checkpoints& checkpoints = s.config.checkpoints;
  s.storing = true;
  if (checkpoints.resume.folder.empty()) return CopyConstant(self, begin);
  const auto then = [self, begin, &checkpoints](const std::vector<ShardLoaded>& answers) {
    std::vector<LoadedShard> shards;
    for (const ShardLoaded& answer : answers) shards.push_back(answer.loaded);
    if (checkpoints.loaded && !Try(self, [&] { checkpoints.loaded(shards); })) return;
    CopyConstant(self, begin);
  };
  AskShards<ShardLoaded>(self, LoadShard{0, checkpoints.resume}, then);
}

}  // namespace

bool IsDueByTime(const Checkpoints& checkpoints, std::int64_t stored_ns, std::int64_t now_ns) {
  return checkpoints.folder && checkpoints.every_ns > 0 &&
         now_ns - stored_ns >= checkpoints.every_ns;
}

Director::behavior_type RunDirector(DirectorPointer self, DirectorConfig config) {
  self->state.config = std::move(config);
  return {
      [self](const RunJob&) -> caf::result<JobDone> {
        DirectorState& s = self->state;
        s.done = self->make_response_promise<JobDone>();
        if (s.config.abort->raised()) {
          Fail(self, s.config.abort->failure());
        } else {
          Start(self);
        }
        return s.done;
      },
      [self](const JobFailed& failed) { Fail(self, failed.failure); },
      [self](const SaveSoon&) {
        DirectorState& s = self->state;
        s.save_asked = s.config.checkpoints.folder != nullptr;
      },
      [self](const StopSoon&) {
        self->state.last_begun = true;
        self->state.stopped_early = true;
        if (self->state.done.pending()) Pump(self);
      },
  };
}

}  // namespace troupe
