#include "actors/phase_actor.hpp"

#include <algorithm>

#include "layout/at.hpp"
#include "layout/colocated_shares.hpp"

namespace troupe {
namespace {

using Window = PhaseState::Window;
using StateAt = PhaseState::StateAt;

void StartRestoreIfDue(PhasePointer self, std::int64_t unit);

/// Sends one command to all shards that offload, in one order with all other commands of their
/// ranks. When all have answered, the state is at `then`.
template <class Answer, class Command>
void MoveState(PhasePointer self, std::int64_t unit, const Command& command, StateAt then) {
  const auto moved = [self, unit, then](const FromSet<Answer>&) {
    Window& window = self->state.windows.at(unit);
    window.state = then;
    StartRestoreIfDue(self, unit);
    if (then == StateAt::kDevice && window.when_restored) {
      const auto phase3 = std::move(window.when_restored);
      phase3();  // ends the window
    }
  };
  const PhaseConfig& config = self->state.config;
  Ask(self, config.devices, ForShards(config.offloads, command), moved);
}

/// Phase 2 begins.
void StartOffload(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  if (s.config.offloads.empty() || !window.train) return;
  window.state = StateAt::kLeaving;
  MoveState<StateOffloaded>(self, unit, OffloadState{0, window.round, unit}, StateAt::kAway);
}

/// Called when a gradient has arrived or the state has left.
void StartRestoreIfDue(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  // Even in a short window the state is away until a backward has run. The copies follow one that is
  // queued.
  const std::int64_t ahead =
      std::min(s.config.restore_ahead, window.microbatches - 1) + s.config.queued_backwards;
  const std::int64_t missing = ahead * s.config.language.layout().dp;
  if (window.state != StateAt::kAway) return;
  if (static_cast<std::int64_t>(window.missing_gradients) > missing) return;
  window.state = StateAt::kReturning;
  MoveState<StateRestored>(self, unit, RestoreState{0, window.round, unit, window.last_of_round},
                           StateAt::kDevice);
}

/// Runs `phase3` when the state is on the devices.
void WhenRestored(PhasePointer self, std::int64_t unit, std::function<void()> phase3) {
  Window& window = self->state.windows.at(unit);
  if (window.state == StateAt::kDevice) return phase3();
  window.when_restored = std::move(phase3);
}

/// Phase 3: every encoder rank has the gradients of its rows. Answers the encoder's replicas.
void AnswerEncoder(PhasePointer self, std::int64_t unit, const FromSet<ExchangeDone>& done) {
  PhaseState& s = self->state;
  auto node = s.windows.extract(unit);
  Window& window = node.mapped();
  const int last = s.config.encoder.layout().pp - 1;
  for (std::size_t replica = 0; replica < window.rows.size(); ++replica) {
    Gradient gradient{unit, {}};
    for (const int rank : s.config.encoder.StageRanks(last, static_cast<int>(replica))) {
      gradient.shards.push_back(done.parts[PlaceOf(rank, s.config.ranks)].rows);
    }
    window.rows[replica].promise.deliver(std::move(gradient));
  }
}

void AnswerNone(PhasePointer self, std::int64_t unit) {
  auto node = self->state.windows.extract(unit);
  for (auto& rows : node.mapped().rows) rows.promise.deliver(Gradient{unit, {}});
}

/// Adds the shards of `ranks`, or the one that all of them have, to `rows`, by place in the group.
void AddShards(const PhaseConfig& config, const std::vector<int>& ranks,
               const std::vector<Buffer>& shards, std::vector<std::vector<Buffer>>& rows) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    rows[PlaceOf(ranks[i], config.ranks)].push_back(shards.size() == 1 ? shards.front()
                                                                       : shards.at(i));
  }
}

/// Sends one exchange to all ranks of the group; `rows[place]` are those of each rank.
template <class Then>
void Exchange(PhasePointer self, std::int64_t unit, ExchangePlan plan, Window& window,
              std::vector<std::vector<Buffer>> rows, bool to_host, Then then) {
  PhaseState& s = self->state;
  plan.row_shape = window.row_shape;
  plan.dtype = window.dtype;
  const auto shared = std::make_shared<const ExchangePlan>(std::move(plan));
  ToSet<RunExchange> set;
  for (std::size_t place = 0; place < s.config.ranks.size(); ++place) {
    set.parts.emplace_back(s.config.ranks[place],
                           RunExchange{s.config.stage, s.config.group, window.round, unit, shared,
                                       std::move(rows[place]), to_host});
  }
  Ask(self, s.config.devices, std::move(set), then);
}

/// The last gradient of the window has arrived: sends all back to the encoder's ranks.
void TransformBack(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  if (window.no_gradient) return WhenRestored(self, unit, [self, unit] { AnswerNone(self, unit); });
  std::vector<std::vector<Buffer>> rows(s.config.ranks.size());
  for (std::size_t replica = 0; replica < window.gradients.size(); ++replica) {
    const auto ranks = s.config.language.StageRanks(0, static_cast<int>(replica));
    for (const auto& microbatch : window.gradients[replica]) {
      AddShards(s.config, ranks, microbatch, rows);
    }
  }
  auto plan = BackwardExchange(window.route, s.config.encoder, s.config.language, s.config.ranks);
  Exchange(self, unit, std::move(plan), window, std::move(rows), /*to_host=*/false,
           [self, unit](const FromSet<ExchangeDone>& done) {
             WhenRestored(self, unit, [self, unit, done] { AnswerEncoder(self, unit, done); });
           });
}

void OnGradient(PhasePointer self, std::int64_t unit, std::size_t replica,
                const Gradient& gradient) {
  Window& window = self->state.windows.at(unit);
  const auto m = static_cast<std::size_t>(gradient.unit - window.first_microbatch);
  window.no_gradient = window.no_gradient || gradient.shards.empty();
  window.gradients[replica][m] = gradient.shards;
  --window.missing_gradients;
  StartRestoreIfDue(self, unit);
  if (window.missing_gradients == 0) TransformBack(self, unit);
}

/// `table` with `shift` added to its samples' numbers.
RowTable Renumbered(RowTable table, std::int64_t shift) {
  for (std::int64_t& sample : table.samples) sample += shift;
  for (RowRun& run : table.runs) run.sample += shift;
  return table;
}

/// The rows that a language replica gets of microbatch `m` of the window.
RowTable MicrobatchTable(const PhaseConfig& config, const Window& window, std::int64_t m,
                         int replica) {
  const std::int64_t first = m * config.samples_per_microbatch;
  const Interval held = PartOf(config.samples_per_microbatch, config.language.layout().dp, replica);
  const std::int64_t most = config.most_in_pack;
  return SamplesOf(window.tables[static_cast<std::size_t>(m)],
                   {{(first + held.begin) * most, (first + held.end) * most}});
}

/// Those of them that a shard of the replica gets: slice n % slices of part n / slices.
RowTable ShardTable(const PhaseConfig& config, const RowTable& replica, int shard) {
  const RowCut& cut = config.language_cut;
  const int part = shard / cut.slices;
  return SliceTable(CutTable(replica, cut, part), cut, part, shard % cut.slices);
}

/// Phase 2: the packed rows are on the language model's first stage. Hands them out by microbatch,
/// as views.
void FeedLanguage(PhasePointer self, std::int64_t unit, const FromSet<ExchangeDone>& done) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  const std::int64_t samples = s.config.samples_per_microbatch * s.config.most_in_pack;
  const auto num_shards = At(s.config.language_cut.parts * s.config.language_cut.slices);
  const int replicas = s.config.language.layout().dp;
  window.gradients.assign(At(replicas), std::vector<std::vector<Buffer>>(
                                            static_cast<std::size_t>(window.microbatches)));
  window.missing_gradients = static_cast<std::size_t>(replicas * window.microbatches);
  StartOffload(self, unit);
  for (int replica = 0; replica < replicas; ++replica) {
    const auto ranks = s.config.language.StageRanks(0, replica);
    std::vector<std::int64_t> begins(num_shards);  // of the microbatch, by shard
    for (std::int64_t m = 0; m < window.microbatches; ++m) {
      const RowTable own = MicrobatchTable(s.config, window, m, replica);
      const auto& counts = window.shard_rows[At(replica)][static_cast<std::size_t>(m)];
      std::vector<std::int64_t> ends = begins;
      for (std::size_t shard = 0; shard < num_shards; ++shard) ends[shard] += counts[shard];
      Activation activation{window.first_microbatch + m,
                            s.config.link,
                            {},
                            std::make_shared<const RowTable>(Renumbered(own, -m * samples))};
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        const Buffer& packed = done.parts[PlaceOf(ranks[i], s.config.ranks)].rows;
        const std::size_t shard = i / (ranks.size() / num_shards);
        activation.shards.push_back(packed.Rows(begins[shard], ends[shard]));
      }
      begins = std::move(ends);
      const auto r = static_cast<std::size_t>(replica);
      Ask(self, s.config.stages.at(r), std::move(activation),
          [self, unit, r](const Gradient& gradient) { OnGradient(self, unit, r, gradient); });
    }
  }
}

/// Adds the rows of `more`, whose samples come after those of `table`.
void Append(const RowTable& more, RowTable& table) {
  table.samples.insert(table.samples.end(), more.samples.begin(), more.samples.end());
  table.rows.insert(table.rows.end(), more.rows.begin(), more.rows.end());
  table.runs.insert(table.runs.end(), more.runs.begin(), more.runs.end());
}

/// A table by microbatch, each of `numbers` sample numbers.
std::vector<RowTable> Divided(const RowTable& window, std::int64_t microbatches,
                              std::int64_t numbers) {
  std::vector<RowTable> tables(static_cast<std::size_t>(microbatches));
  for (std::size_t i = 0; i < window.samples.size(); ++i) {
    RowTable& table = tables.at(static_cast<std::size_t>(window.samples[i] / numbers));
    table.samples.push_back(window.samples[i]);
    table.rows.push_back(window.rows[i]);
    if (!window.lengths.empty()) table.lengths.push_back(window.lengths[i]);
  }
  for (const RowRun& run : window.runs) {
    tables.at(static_cast<std::size_t>(run.sample / numbers)).runs.push_back(run);
  }
  return tables;
}

/// Phase 1 is over: the rows of the window have arrived from all encoder replicas.
void Transform(PhasePointer self, std::int64_t unit) {
  PhaseState& s = self->state;
  Window& window = s.windows.at(unit);
  std::vector<const RowTable*> tables;
  std::vector<RowTable> sources;
  for (const auto& rows : window.rows) {
    tables.push_back(rows.activation.rows.get());
    for (int part = 0; part < s.config.encoder_cut.parts; ++part) {
      sources.push_back(CutTable(*tables.back(), s.config.encoder_cut, part));
    }
  }
  const std::int64_t numbers = s.config.samples_per_microbatch * s.config.most_in_pack;
  window.tables = Divided(JoinTables(tables).table, window.microbatches, numbers);
  const int replicas = s.config.language.layout().dp;
  const auto num_shards = At(s.config.language_cut.parts * s.config.language_cut.slices);
  std::vector<RowTable> destinations(At(replicas) * num_shards);
  window.shard_rows.assign(At(replicas), {});
  for (int replica = 0; replica < replicas; ++replica) {
    for (std::int64_t m = 0; m < window.microbatches; ++m) {
      const RowTable own = MicrobatchTable(s.config, window, m, replica);
      auto& counts = window.shard_rows[At(replica)].emplace_back();
      for (std::size_t shard = 0; shard < num_shards; ++shard) {
        const RowTable table = ShardTable(s.config, own, static_cast<int>(shard));
        counts.push_back(table.num_rows());
        Append(table, destinations[At(replica) * num_shards + shard]);
      }
    }
  }
  window.route = RouteOf(sources, destinations);
  std::vector<std::vector<Buffer>> rows(s.config.ranks.size());
  const int last = s.config.encoder.layout().pp - 1;
  for (std::size_t replica = 0; replica < window.rows.size(); ++replica) {
    const auto ranks = s.config.encoder.StageRanks(last, static_cast<int>(replica));
    const auto shards = std::exchange(window.rows[replica].activation.shards, {});
    AddShards(s.config, ranks, shards, rows);
  }
  auto plan = ForwardExchange(window.route, s.config.encoder, s.config.language, s.config.ranks);
  Exchange(self, unit, std::move(plan), window, std::move(rows), s.config.rows_on_host,
           [self, unit](const FromSet<ExchangeDone>& done) { FeedLanguage(self, unit, done); });
}

/// Fixes which microbatches a window holds when its first rows arrive.
Window& Open(PhaseState& s, std::int64_t unit) {
  Window& window = s.windows[unit];
  if (!window.rows.empty()) return window;
  for (const PhaseState::OpenRound& round : s.rounds) {
    const auto [count, each] = round.units;
    const std::int64_t index = unit - round.first_unit;
    if (index < 0 || index >= count) continue;
    window.round = round.number;
    window.first_of_round = index * each;
    window.first_microbatch = round.first_microbatch + window.first_of_round;
    window.microbatches = std::min(each, round.microbatches - window.first_of_round);
    window.train = round.train;
    window.last_of_round = index + 1 == count;
  }
  window.rows.resize(static_cast<std::size_t>(s.config.encoder.layout().dp));
  return window;
}

/// Takes the rows of one encoder replica for a window of a round that has begun.
void Accept(PhasePointer self, PhaseState::EncoderRows rows) {
  PhaseState& s = self->state;
  const std::int64_t unit = rows.activation.unit;
  const auto replica = At(rows.activation.link);
  const Buffer& first = rows.activation.shards.front();
  Window& window = Open(s, unit);
  window.row_shape.assign(first.shape().begin() + 1, first.shape().end());
  window.dtype = first.dtype();
  window.rows.at(replica) = std::move(rows);
  if (++window.arrived == window.rows.size()) Transform(self, unit);
}

/// The rows that a window which has begun to arrive lacks.
ExpectedWaits ExpectedBy(const PhaseState& s) {
  ExpectedWaits expected;
  for (const auto& [unit, window] : s.windows) {
    for (std::size_t replica = 0; replica < window.rows.size(); ++replica) {
      if (window.rows[replica].promise.pending()) continue;
      expected.push_back({.kind = KindOf<Activation>(),
                          .number = unit,
                          .from = s.config.encoders.at(replica),
                          .unit = WaitUnit::kWindow});
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
        auto promise = self->make_response_promise<Gradient>();
        if (activation.unit < s.next_unit) {
          Accept(self, {activation, promise});
        } else {
          // Another process may begin the round before the Director's message arrives here.
          s.early.push_back({activation, promise});
        }
        return promise;
      },
      [self, &s](const RoundBegin& begin) {
        const Round& round = begin.round;
        if (round.number != s.next_round++) {
          return Fail(self, MakeFailure(WrongRound(s.config.name, s.next_round - 1, round)));
        }
        const Units units = s.config.units.In(round.microbatches);
        s.rounds.push_back(
            {round.number, s.next_unit, s.next_microbatch, round.microbatches, units, round.train});
        s.next_unit += units.count;
        s.next_microbatch += round.microbatches;
        if (s.rounds.size() > 4) s.rounds.erase(s.rounds.begin());
        for (auto& rows : std::exchange(s.early, {})) {
          if (rows.activation.unit < s.next_unit) {
            Accept(self, std::move(rows));
          } else {
            s.early.push_back(std::move(rows));
          }
        }
      },
  };
}

}  // namespace troupe
