#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "actors/director_parts.hpp"
#include "layout/text.hpp"
#include "modules/gradient_clip.hpp"
#include "modules/learning_rate.hpp"
#include "trace/clock.hpp"

namespace troupe {

void Fail(DirectorPointer self, const Failure& failure) {
  DirectorState& s = self->state;
  s.config.abort->Raise(failure);
  if (s.done.pending()) s.done.deliver(JobDone{s.config.abort->failure()});
  self->RefuseAll(MakeFailure(s.config.abort->failure()));
}

namespace {

using OpenRound = DirectorState::OpenRound;

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

/// A stage that had no passes reports no times.
void AddOwnTimes(const std::vector<int>& ranks, const StageReport& report,
                 std::map<int, double>& own_s) {
  for (std::size_t shard = 0; shard < ranks.size(); ++shard) {
    const std::int64_t own_ns = shard < report.own_ns.size() ? report.own_ns[shard] : 0;
    own_s[ranks[shard]] += static_cast<double>(own_ns) * 1e-9;
  }
}

void NameSlow(DirectorState& s, const OpenRound& done) {
  DirectorConfig& config = s.config;
  const RoundResult& result = done.result;
  if (!result.round.train) return;
  std::map<ProcessId, SlowProcess> processes;
  for (const SlowRank& slow : config.slow.OnStep(result.seconds, done.own_s)) {
    SlowProcess& process = processes[config.processes->HomeOf(slow.rank)];
    process.ranks.push_back(slow.rank);
    const SlowRank& slowest = process.slowest;
    if (process.ranks.size() == 1 || slow.own_s * slowest.usual_s > slowest.own_s * slow.usual_s) {
      process.slowest = slow;
    }
  }
  for (auto& [id, process] : processes) {
    process.name = config.processes->Of(id).name;
    config.observer->OnSlow(result.round.step + 1, process);
  }
  if (!config.replace || s.last_begun || !config.rounds(s.next_round)) return;
  // Asked again after each step, while more are to begin: a spare may come later.
  for (const int rank : config.slow.SlowNow()) config.replace(config.processes->HomeOf(rank));
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
  if (!Try(self, [&] { NameSlow(s, done); })) return;
  s.course.OnComplete(done.result.round, now);
  PublishSaved(self);
  CompleteMirror(self);
  PumpDirector(self);
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

}  // namespace

void Apply(DirectorPointer self, std::int64_t number, std::size_t u, std::int64_t since_ns) {
  DirectorState& s = self->state;
  const std::int64_t now_ns = NowNs();
  OpenRound& open = s.open.at(number);
  if (!s.mirrors.MayUpdate(open.result.round.step + 1)) {
    s.held_back.push_back({number, u, since_ns == 0 ? now_ns : since_ns});
    return;
  }
  if (!open.applied.insert(u).second) return;
  const ApplyUpdate apply{.round = number,
                          .squared_norms = open.squared_norms,
                          .clip_norm = s.config.optimizer.clip_norm,
                          .held_ns = since_ns == 0 ? 0 : now_ns - since_ns};
  self->request(s.config.updates[u], caf::infinite, apply)
      .then(
          [self, u, number](const UpdateDone& done) {
            OpenRound& updated = self->state.open.at(number);
            updated.result.busy_seconds += static_cast<double>(done.busy_ns) * 1e-9;
            updated.missing_updates.erase(u);
            CheckComplete(self, number);
          },
          OnError(self));
}

namespace {

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
  begin.wait = s.config.optimizer.clip_norm > 0.0 || s.config.inspect || s.mirrors.mirrors();
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
  s.course.OnBegin(round);
  s.mirrors.OnBegin(round);
  Mirror(self);
  if (round.train) BeginUpdates(self, round);
  for (std::size_t i = 0; i < s.config.stages.size(); ++i) {
    self->request(s.config.stages[i], caf::infinite, RoundBegin{round})
        .then(
            [self, i](const StageReport& report) {
              OpenRound& reported = self->state.open.at(report.round);
              reported.losses[i] = report.loss;
              AddOwnTimes(self->state.config.ranks.at(i), report, reported.own_s);
              reported.result.replaced.insert(report.replaced.begin(), report.replaced.end());
              reported.result.busy_seconds += static_cast<double>(report.busy_ns) * 1e-9;
              if (report.data.ns > reported.result.data.ns) reported.result.data = report.data;
              reported.missing_reports.erase(i);
              CheckComplete(self, report.round);
            },
            OnError(self));
  }
}

/// All rounds are complete: hands out the final parameters, then answers RunJob.
void Finish(DirectorPointer self) {
  DirectorState& s = self->state;
  if (s.course.is_saving() || s.mirrors.is_under_way() || s.finishing) return;
  if (s.course.IsMissingAtEnd(s.stopped_early)) {
    return SaveAlone(self, [self] { Finish(self); });
  }
  s.finishing = true;
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

}  // namespace

/// The only place that begins rounds.
void PumpDirector(DirectorPointer self) {
  DirectorState& s = self->state;
  if (s.storing) return;
  if (s.course.holds() && s.open.empty() && !s.last_begun) {
    return SaveAlone(self, [self] { PumpDirector(self); });
  }
  const int ahead = s.config.inspect ? 0 : s.config.rounds_ahead;
  while (!self->failed() && !s.last_begun && !s.course.holds() &&
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

namespace {

/// Loads the checkpoint to resume from, if there is one, and begins.
void Start(DirectorPointer self) {
  DirectorState& s = self->state;
  const auto begin = [self] {
    self->state.storing = false;
    self->state.completed_ns = NowNs();
    self->state.course.Start(self->state.completed_ns);
    PumpDirector(self);
  };
  const Checkpoints& checkpoints = s.config.checkpoints;
  s.storing = true;
  if (checkpoints.resume.folder.empty()) return CopyConstant(self, begin);
  const auto then = [self, begin, &checkpoints](const std::vector<ShardLoaded>& answers) {
    std::vector<LoadedShard> shards;
    for (const ShardLoaded& answer : answers) shards.push_back(answer.loaded);
    if (checkpoints.loaded &&
        !Try(self, [&] { checkpoints.loaded(shards, self->state.config.open_elsewhere); })) {
      return;
    }
    CopyConstant(self, begin);
  };
  AskShards<ShardLoaded>(self, LoadShard{0, checkpoints.resume}, then);
}

}  // namespace

Director::behavior_type RunDirector(DirectorPointer self, DirectorConfig config) {
  const Checkpoints& checkpoints = config.checkpoints;
  self->state.course = CheckpointCourse({.writes = checkpoints.folder != nullptr,
                                         .async = checkpoints.async,
                                         .every = checkpoints.every,
                                         .every_ns = checkpoints.every_ns});
  self->state.course.Resume(checkpoints.step, !checkpoints.resume.in_memory);
  self->state.mirrors = MirrorCourse(config.holders.empty() ? 0 : checkpoints.mirror_every);
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
      [self](const SaveSoon&) { self->state.course.Ask(); },
      [self](const StopSoon&) {
        self->state.last_begun = true;
        self->state.stopped_early = true;
        if (self->state.done.pending()) PumpDirector(self);
      },
  };
}

}  // namespace troupe
