#include "actors/phase_actor.hpp"

#include <algorithm>
#include <utility>

#include "actors/names.hpp"
#include "layout/colocated_shares.hpp"
#include "modules/unit_samples.hpp"

namespace troupe {

using Window = PhaseState::Window;

void Fail(PhasePointer self, const caf::error& reason) {
  PhaseState& s = self->state;
  if (std::exchange(s.failed, true)) return;
  s.config.abort->Raise(TextOf(reason));
  for (auto& [unit, window] : s.windows) {
    for (auto& asker : window.askers) {
      if (asker.pending()) asker.deliver(reason);
    }
  }
  s.windows.clear();
}

namespace {

/// Phase 3: every encoder rank has the gradients of its rows; answer the encoder's replicas.
void AnswerEncoder(PhasePointer self, std::int64_t unit, const FromSet<ExchangeDone>& done) {
  PhaseState& s = self->state;
  auto node = s.windows.extract(unit);
  if (node.empty()) return;
  Window& window = node.mapped();
  const int last = s.config.encoder.layout().pp - 1;
  for (std::size_t replica = 0; replica < window.askers.size(); ++replica) {
    Gradient gradient{unit, {}};
    for (const int rank : s.config.encoder.StageRanks(last, static_cast<int>(replica))) {
      const auto place = static_cast<std::size_t>(PlaceOf(rank, s.config.ranks));
      gradient.shards.push_back(done.parts[place].rows);
    }
    window.askers[replica].deliver(std::move(gradient));
  }
}

void AnswerNone(PhasePointer self, std::int64_t unit) {
  auto node = self->state.windows.extract(unit);
  for (auto& asker : node.mapped().askers) asker.deliver(Gradient{unit, {}});
}

/// Sends one exchange to all ranks of the group; `rows[place]` are what each rank gives.
template <class Then>
void Exchange(PhasePointer self, std::int64_t unit, ExchangePlan plan, Window& window,
              std::vector<std::vector<Buffer>> rows, Then then) {
  PhaseState& s = self->state;
  plan.row_shape = window.row_shape;
  plan.dtype = window.dtype;
  const auto shared = std::make_shared<const ExchangePlan>(std::move(plan));
  ToSet<RunExchange> set;
  for (std::size_t place = 0; place < s.config.ranks.size(); ++place) {
    set.parts.emplace_back(s.config.ranks[place],
                           RunExchange{s.config.stage, s.config.group, window.round, unit, shared,
                                       std::move(rows[place])});
  }
  self->request(s.config.devices, caf::infinite, std::move(set))
      .then(then, [self](const caf::error& reason) { Fail(self, reason); });
}

/// The last gradient of the window is here: back to the encoder's ranks.
void TransformBack(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  if (window.none) return WhenRestored(self, unit, [self, unit] { AnswerNone(self, unit); });
  std::vector<std::vector<Buffer>> rows(s.config.ranks.size());
  for (std::size_t replica = 0; replica < window.gradients.size(); ++replica) {
    const auto ranks = s.config.language.StageRanks(0, static_cast<int>(replica));
    for (const auto& microbatch : window.gradients[replica]) {
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const auto place = static_cast<std::size_t>(PlaceOf(ranks[i], s.config.ranks));
        rows[place].push_back(microbatch.size() == 1 ? microbatch.front() : microbatch.at(i));
      }
    }
  }
  auto plan = BackwardExchange(window.route, s.config.encoder, s.config.language, s.config.ranks);
  Exchange(self, unit, std::move(plan), window, std::move(rows),
           [self, unit](const FromSet<ExchangeDone>& done) {
             WhenRestored(self, unit, [self, unit, done] { AnswerEncoder(self, unit, done); });
           });
}

void OnGradient(PhasePointer self, std::int64_t unit, std::size_t replica,
                const Gradient& gradient) {
  PhaseState& s = self->state;
  const auto found = s.windows.find(unit);
  if (found == s.windows.end()) return;  // failed meanwhile
  Window& window = found->second;
  const auto m = static_cast<std::size_t>(gradient.unit - window.first_microbatch);
  window.none = window.none || gradient.shards.empty();
  window.gradients[replica][m] = gradient.shards;
  --window.missing_gradients;
  StartRestoreIfDue(self, unit);
  if (window.missing_gradients == 0) TransformBack(self, unit);
}

/// Rows of every sample of the window, and what each language replica gets of microbatch m.
std::vector<std::int64_t> RowsPerSample(const Window& window, std::int64_t samples) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(window.microbatches * samples));
  for (const Activation& activation : window.activations) {
    for (std::size_t i = 0; i < activation.rows->samples.size(); ++i) {
      rows.at(static_cast<std::size_t>(activation.rows->samples[i])) = activation.rows->rows[i];
    }
  }
  return rows;
}

/// Phase 2: the packed rows are on the language model's first stage; hand out microbatch by
/// microbatch, as views.
void FeedLanguage(PhasePointer self, std::int64_t unit, const FromSet<ExchangeDone>& done) {
  PhaseState& s = self->state;
  const auto found = s.windows.find(unit);
  if (found == s.windows.end()) return;
  Window& window = found->second;
  const std::int64_t samples = s.config.samples_per_microbatch;
  const auto rows_per_sample = RowsPerSample(window, samples);
  const int replicas = s.config.language.layout().dp;
  window.gradients.assign(
      static_cast<std::size_t>(replicas),
      std::vector<std::vector<Buffer>>(static_cast<std::size_t>(window.microbatches)));
  window.missing_gradients = static_cast<std::size_t>(replicas * window.microbatches);
  StartOffload(self, unit);
  for (int replica = 0; replica < replicas; ++replica) {
    const auto ranks = s.config.language.StageRanks(0, replica);
    const Interval held = PartOf(samples, replicas, replica);
    std::int64_t row = 0;
    for (std::int64_t m = 0; m < window.microbatches; ++m) {
      auto table = std::make_shared<RowTable>();
      for (auto sample = held.begin; sample < held.end; ++sample) {
        table->samples.push_back(sample);
        table->rows.push_back(rows_per_sample[static_cast<std::size_t>(m * samples + sample)]);
      }
      Activation activation{window.first_microbatch + m, s.config.link, {}, table};
      for (const int rank : ranks) {
        const auto place = static_cast<std::size_t>(PlaceOf(rank, s.config.ranks));
        activation.shards.push_back(done.parts[place].rows.Rows(row, row + table->num_rows()));
      }
      row += table->num_rows();
      const auto r = static_cast<std::size_t>(replica);
      self->request(s.config.stages.at(r), caf::infinite, std::move(activation))
          .then([self, unit, r](const Gradient& gradient) { OnGradient(self, unit, r, gradient); },
                [self](const caf::error& reason) { Fail(self, reason); });
    }
  }
}

/// Phase 1 is over: all encoder replicas' rows of the window are here.
void Transform(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  const std::int64_t samples = s.config.samples_per_microbatch;
  const int length = static_cast<int>(window.microbatches);
  window.route = MakeRoute(RowsPerSample(window, samples),
                           ColocatedShares(s.config.encoder, s.config.language)
                               .Window(samples, window.first_of_round, length),
                           WindowAssignment(samples, length, s.config.language.layout().dp));
  std::vector<std::vector<Buffer>> rows(s.config.ranks.size());
  const int last = s.config.encoder.layout().pp - 1;
  for (std::size_t replica = 0; replica < window.activations.size(); ++replica) {
    const auto ranks = s.config.encoder.StageRanks(last, static_cast<int>(replica));
    const auto& shards = window.activations[replica].shards;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto place = static_cast<std::size_t>(PlaceOf(ranks[i], s.config.ranks));
      rows[place].push_back(shards.size() == 1 ? shards.front() : shards.at(i));
    }
  }
  auto plan = ForwardExchange(window.route, s.config.encoder, s.config.language, s.config.ranks);
  Exchange(self, unit, std::move(plan), window, std::move(rows),
           [self, unit](const FromSet<ExchangeDone>& done) { FeedLanguage(self, unit, done); });
  for (Activation& activation : window.activations) activation.shards.clear();
}

/// Fixes which microbatches a window holds when its first rows arrive.
Window& Open(PhaseState& s, std::int64_t unit) {
  Window& window = s.windows[unit];
  if (!window.activations.empty()) return window;
  for (const PhaseState::OpenRound& round : s.rounds) {
    const std::int64_t length = s.config.window == 0 ? round.microbatches : s.config.window;
    const std::int64_t index = unit - round.first_unit;
    if (index < 0 || index >= UnitsIn(round.microbatches, s.config.window)) continue;
    window.round = round.number;
    window.first_of_round = index * length;
    window.first_microbatch = round.first_microbatch + window.first_of_round;
    window.microbatches = std::min(length, round.microbatches - index * length);
    window.train = round.train;
    window.last_of_round = index + 1 == UnitsIn(round.microbatches, s.config.window);
  }
  const auto replicas = static_cast<std::size_t>(s.config.encoder.layout().dp);
  window.activations.resize(replicas);
  window.askers.resize(replicas);
  return window;
}

/// The rows that a window which has begun to arrive lacks.
ExpectedWaits ExpectedBy(const PhaseState& s) {
  ExpectedWaits expected;
  for (const auto& [unit, window] : s.windows) {
    for (std::size_t replica = 0; replica < window.askers.size(); ++replica) {
      if (window.askers[replica].pending()) continue;
      expected.push_back({.kind = KindOf<Activation>(),
                          .number = unit,
                          .from = s.config.encoders.at(replica),
                          .unit = RequestUnit::kWindow});
    }
  }
  return expected;
}

}  // namespace

Phase::behavior_type RunPhase(PhasePointer self, PhaseConfig config) {
  PhaseState& s = self->state;
  s.config = std::move(config);
  self->Expects([&s] { return ExpectedBy(s); });
  return {
      [self, &s](const Activation& activation) -> caf::result<Gradient> {
        if (s.failed) return MakeFailure(s.config.abort->cause());
        Window& window = Open(s, activation.unit);
        auto asker = self->make_response_promise<Gradient>();
        const auto replica = static_cast<std::size_t>(activation.link);
        const Buffer& rows = activation.shards.front();
        window.row_shape.assign(rows.shape().begin() + 1, rows.shape().end());
        window.dtype = rows.dtype();
        window.activations.at(replica) = activation;
        window.askers[replica] = asker;
        if (++window.here == window.activations.size()) Transform(self, activation.unit);
        return asker;
      },
      [self, &s](const RoundBegin& begin) {
        const Round& round = begin.round;
        if (round.number != s.next_round++) {
          return Fail(self, MakeFailure(WrongRound(s.config.name, s.next_round - 1, round)));
        }
        s.rounds.push_back(
            {round.number, s.next_unit, s.next_microbatch, round.microbatches, round.train});
        s.next_unit += UnitsIn(round.microbatches, s.config.window);
        s.next_microbatch += round.microbatches;
        if (s.rounds.size() > 4) s.rounds.erase(s.rounds.begin());
      },
  };
}

}  // namespace troupe
