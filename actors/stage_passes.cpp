// The passes of a stage: fetches the tensors that messages name, commands the devices and handles
// their answers.
#include <algorithm>
#include <optional>
#include <utility>

#include "actors/stage_actor.hpp"
#include "layout/at.hpp"

namespace troupe {
namespace {

/// Fetches the shards of a part that devices of this process will read. Returns how many are being
/// fetched; each of them comes as a copy of `arrived`.
std::size_t FetchShards(StagePointer self, std::vector<Buffer>& shards,
                        const std::optional<int>& part, const ShardArrived& arrived,
                        const std::string& kind) {
  StageState& s = self->state;
  const Interval all = s.ShardsOf(part);
  const auto is_local = [&s](std::int64_t shard) {
    return s.config.local.at(static_cast<std::size_t>(shard));
  };
  std::size_t missing = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::int64_t own = all.begin + static_cast<std::int64_t>(i);
    const Interval readers = shards.size() > 1 ? Interval{own, own + 1} : all;
    std::int64_t first = readers.begin;
    while (first < readers.end && !is_local(first)) ++first;
    if (shards[i].local() || first == readers.end) continue;
    ++missing;
    ShardArrived message = arrived;
    message.shard = static_cast<int>(i);
    FetchInto(self, shards[i],
              s.config.on_device.empty() ? Buffer::kHost
                                         : s.config.on_device.at(static_cast<std::size_t>(first)),
              s.config.name + ": " + kind + " of microbatch " + std::to_string(arrived.unit) +
                  InParentheses(PlaceOf(s, arrived.unit)),
              std::move(message));
  }
  return missing;
}

/// Counts the activations of a link that are complete in order: the rule may see them now.
void CountActivations(StageState& s, StageState::IncomingLink& link) {
  const auto next = [&] { return static_cast<std::size_t>(link.complete - s.counters.forwards); };
  while (next() < link.waiting.size() && link.waiting[next()].missing == 0) ++link.complete;
}

void CountGradients(StageState& s, std::size_t link) {
  for (auto& complete = s.out[link].complete;; ++complete) {
    const auto next = s.flights.find(complete);
    if (next == s.flights.end()) return;
    const auto& gradient = next->second.gradients[link];
    if (!gradient.received || gradient.missing > 0) return;
  }
}

/// The answer on outgoing link `link`. Fails if its unit is not the expected one.
void ReceiveGradient(StagePointer self, std::size_t link, const Gradient& gradient) {
  StageState& s = self->state;
  const std::string wrong =
      WrongUnit(s, "gradient", s.out[link].received, s.config.out[link].to, gradient.unit);
  if (!wrong.empty()) return Fail(self, MakeFailure(wrong));
  ++s.out[link].received;
  auto& returned = s.flights.at(gradient.unit).gradients[link];
  returned.shards = gradient.shards;
  returned.received = true;
  returned.missing =
      FetchShards(self, returned.shards, s.config.out[link].part,
                  {true, static_cast<int>(link), gradient.unit, 0, {}, false}, "gradient");
  CountGradients(s, link);
  Pump(self);
}

/// Empty, or why the rows that arrived on `link` are not those that the stage's own data expects.
std::string RowMismatch(const StageConfig& config, std::size_t link, const UnitPlace& place,
                        const Activation& activation, const Inputs& data) {
  const auto& source = config.in[link].source;
  const auto expected = data.expected.find(source);
  if (expected == data.expected.end() || !activation.rows) return {};
  const StageConfig::Incoming& from = config.in[link];
  const RowTable want =
      from.part ? CutTable(expected->second, from.cut, *from.part) : expected->second;
  const RowTable& got = *activation.rows;
  if (want == got) return {};
  const std::string where = config.name + ": edge from " + source + ", " + ToString(place);
  for (std::size_t i = 0; i < std::min(want.samples.size(), got.samples.size()); ++i) {
    if (want.samples[i] == got.samples[i] && want.rows[i] == got.rows[i]) continue;
    return where + ": expected " + std::to_string(want.rows[i]) + " rows of sample " +
           std::to_string(want.samples[i]) + ", got " + std::to_string(got.rows[i]) +
           " rows of sample " + std::to_string(got.samples[i]);
  }
  if (want.samples.size() == got.samples.size()) {
    return where + ": expected other rows or places of the same samples";
  }
  return where + ": expected " + std::to_string(want.samples.size()) + " samples, got " +
         std::to_string(got.samples.size());
}

/// Puts the buffers that each shard reads of `links`, of which `shards[l]` are the shards, in the places
/// that they have in the program. If there is one shard, all devices of its part read it.
template <class Link>
std::vector<Buffer> ReadBy(const StageState& s, std::size_t shard, const std::vector<Link>& links,
                           const std::vector<const std::vector<Buffer>*>& shards) {
  std::vector<Buffer> all;
  for (std::size_t l = 0; l < links.size(); ++l) {
    const Interval readers = s.ShardsOf(links[l].part);
    const auto index = static_cast<std::int64_t>(shard);
    if (all.size() <= links[l].place) all.resize(links[l].place + 1);
    if (!readers.Contains(index) || shards[l]->empty()) continue;
    const auto own = static_cast<std::size_t>(index - readers.begin);
    all[links[l].place] = shards[l]->size() == 1 ? shards[l]->front() : shards[l]->at(own);
  }
  return all;
}

/// `buffer` for a message, pushed to the process that will fetch this shard of its link, if known.
Buffer Towards(const StageState& s, const std::vector<ProcessId>& fetchers, std::size_t shard,
               const Buffer& buffer) {
  return shard < fetchers.size() ? s.config.tensors->Push(buffer, fetchers[shard]) : buffer;
}

/// Sends the command of a pass to all devices, `command(i)` to that of shard i, and counts the pass
/// as done when all have answered. `done` follows from the answers.
template <class Answer, class Command, class Done>
void RunOnDevices(StagePointer self, Command command, Done done) {
  StageState& s = self->state;
  ToSet<decltype(command(std::size_t{0}))> set;
  for (std::size_t i = 0; i < s.config.ranks.size(); ++i) {
    set.parts.emplace_back(s.config.ranks[i], command(i));
  }
  Ask(self, s.config.devices, std::move(set), [self, &s, done](const FromSet<Answer>& answers) {
    s.running.pop_front();
    StageReport& report = s.rounds.front().report;
    report.own_ns.resize(answers.parts.size());
    for (std::size_t shard = 0; shard < answers.parts.size(); ++shard) {
      report.busy_ns += answers.parts[shard].busy_ns;
      report.own_ns[shard] += answers.parts[shard].own_ns;
    }
    done(answers);
    Pump(self);
  });
}

/// Forward `unit` is done on all shards: sends its output on and answers the requests that need no
/// gradient.
void EndForward(StagePointer self, std::int64_t unit, const FromSet<ForwardDone>& done) {
  StageState& s = self->state;
  ++s.forwards_done;
  StageState::Flight& flight = s.flights.at(unit);
  LossSums& loss = s.rounds.front().report.loss;
  for (int part = 0; part < s.config.parts; ++part) {  // ranks along tp have the same
    loss += done.parts[static_cast<std::size_t>(s.ShardsOf(part).begin)].result.loss;
  }
  if (s.out.empty()) {
    loss.sequence_tokens += flight.num_tokens;
    if (flight.rows) loss.samples += std::ssize(flight.rows->samples);
  }

  for (std::size_t l = 0; l < s.in.size(); ++l) {
    if (NeedsBackward(s) && s.config.in[l].carries_gradient) continue;
    flight.promises[l].deliver(Gradient{unit, {}});
  }
  if (flight.taken.pending()) flight.taken.deliver(InputTaken{unit});

  for (std::size_t l = 0; l < s.out.size(); ++l) {
    const StageConfig::Outgoing& link = s.config.out[l];
    Activation activation{unit, link.target.link, {}, flight.rows, PlaceOf(s, unit)};
    const Interval own = s.ShardsOf(link.part);
    for (auto i = static_cast<std::size_t>(own.begin); std::cmp_less(i, own.end); ++i) {
      activation.shards.push_back(
          Towards(s, link.fetchers, i, done.parts[i].result.outputs.at(link.place)));
    }
    Ask(self, link.target.to, std::move(activation),
        [self, l](const Gradient& gradient) { ReceiveGradient(self, l, gradient); });
  }
}

/// The table of a replica's rows from those of its parts along cp; null if there is none.
std::shared_ptr<const RowTable> Joined(const std::vector<std::shared_ptr<const RowTable>>& parts) {
  if (parts.size() == 1) return parts.front();
  std::vector<const RowTable*> tables;
  for (const auto& part : parts) {
    if (!part) return nullptr;
    tables.push_back(part.get());
  }
  return tables.empty() ? nullptr : std::make_shared<const RowTable>(JoinTables(tables).table);
}

void StartForward(StagePointer self, std::int64_t unit) {
  StageState& s = self->state;
  const Round& round = s.rounds.front().round;
  StageState::Flight& flight = s.flights[unit];
  flight.gradients.resize(s.out.size());

  ForwardPass pass;
  pass.unit = unit;
  pass.train = NeedsBackward(s);
  pass.loss_scale = round.loss_scale;
  pass.token_scale = round.token_scale;
  pass.sample_scale = round.sample_scale;
  pass.step = round.step;
  pass.next_backward = NextBackward(s.counters, s.config.rule).value_or(kNoUnit);
  pass.first_microbatch =
      PlaceOf(s, unit).number * s.config.units.In(round.microbatches).microbatches_each;
  if (s.config.reads_data) {
    StageState::WaitingInput& next = s.inputs.front();
    pass.data = std::move(next.input.data);
    flight.taken = std::move(next.promise);
    flight.samples = std::move(next.input.samples);
    flight.num_tokens = pass.data->num_tokens;
    auto& replaced = s.rounds.front().report.replaced;
    replaced.insert(replaced.end(), pass.data->replaced.begin(), pass.data->replaced.end());
    s.inputs.pop_front();
  }
  std::vector<std::vector<Buffer>> inputs;  // by link, then shard
  std::vector<std::shared_ptr<const RowTable>> tables;
  for (std::size_t l = 0; l < s.in.size(); ++l) {
    auto next = std::move(s.in[l].waiting.front());
    s.in[l].waiting.pop_front();
    flight.promises.push_back(std::move(next.promise));
    if (pass.data) {
      const auto text = RowMismatch(s.config, l, PlaceOf(s, unit), next.activation, *pass.data);
      if (!text.empty()) return Fail(self, MakeFailure(text));
    }
    if (s.config.in[l].place == 0) tables.push_back(next.activation.rows);
    inputs.push_back(std::move(next.activation.shards));
  }
  if (pass.data) {
    flight.rows = std::shared_ptr<const RowTable>(pass.data, &pass.data->table);
  } else {
    pass.rows = flight.rows = Joined(tables);
  }
  std::vector<const std::vector<Buffer>*> by_link;
  for (const auto& shards : inputs) by_link.push_back(&shards);
  RunOnDevices<ForwardDone>(
      self,
      [&](std::size_t shard) {
        RunForward run{s.config.stage, round.number, pass, PlaceOf(s, unit), flight.samples};
        run.pass.inputs = ReadBy(s, shard, s.config.in, by_link);
        return run;
      },
      [self, unit](const FromSet<ForwardDone>& done) { EndForward(self, unit, done); });
}

/// Backward `unit` is done on all shards: answers the activations that need its gradient.
void EndBackward(StageState& s, std::int64_t unit, const FromSet<BackwardDone>& done) {
  StageState::Flight flight = std::move(s.flights.at(unit));
  s.flights.erase(unit);
  for (std::size_t l = 0; l < s.in.size(); ++l) {
    if (!flight.promises[l].pending()) continue;
    Gradient gradient{unit, {}};
    const StageConfig::Incoming& link = s.config.in[l];
    const Interval own = s.ShardsOf(link.part);
    for (auto i = static_cast<std::size_t>(own.begin); std::cmp_less(i, own.end); ++i) {
      gradient.shards.push_back(
          Towards(s, link.fetchers, i, done.parts[i].result.gradients.at(link.place)));
    }
    flight.promises[l].deliver(std::move(gradient));
  }
}

void StartBackward(StagePointer self, std::int64_t unit) {
  StageState& s = self->state;
  const StageState::Flight& flight = s.flights.at(unit);
  const BackwardPass pass{
      .unit = unit,
      .gradients = {},
      .split_weights = s.config.rule.splits_backward,
      .last = unit + 1 == s.counters.horizon,
      .next_backward = NextBackward(s.counters, s.config.rule).value_or(kNoUnit)};
  std::vector<const std::vector<Buffer>*> by_link;  // without shards: the link has no gradient
  for (const auto& returned : flight.gradients) by_link.push_back(&returned.shards);
  RunOnDevices<BackwardDone>(
      self,
      [&](std::size_t shard) {
        RunBackward run{s.config.stage, s.rounds.front().round.number, pass, PlaceOf(s, unit),
                        flight.samples};
        run.pass.gradients = ReadBy(s, shard, s.config.out, by_link);
        return run;
      },
      [&s, unit](const FromSet<BackwardDone>& done) { EndBackward(s, unit, done); });
}

/// The weights' part of backward `unit`; the devices have kept its inputs.
void StartWeights(StagePointer self, std::int64_t unit) {
  StageState& s = self->state;
  const RunBackwardWeights run{s.config.stage, s.rounds.front().round.number, unit,
                               PlaceOf(s, unit)};
  RunOnDevices<BackwardWeightsDone>(
      self, [&](std::size_t) { return RunBackwardWeights(run); },
      [](const FromSet<BackwardWeightsDone>&) {});
}

}  // namespace

void StartPass(StagePointer self, const Pass& pass) {
  switch (pass.kind) {
    case PassKind::kForward:
      return StartForward(self, pass.unit);
    case PassKind::kBackward:
      return StartBackward(self, pass.unit);
    case PassKind::kWeight:
      return StartWeights(self, pass.unit);
  }
}

void ReceiveActivation(StagePointer self, const Activation& activation, Promise<Gradient> promise) {
  StageState& s = self->state;
  StageState::IncomingLink& link = s.in[At(activation.link)];
  ++link.received;
  link.waiting.push_back({activation, std::move(promise)});
  auto& waiting = link.waiting.back();
  waiting.missing =
      FetchShards(self, waiting.activation.shards, s.config.in[At(activation.link)].part,
                  {false, activation.link, activation.unit, 0, {}, false}, "activation");
  CountActivations(s, link);
  Pump(self);
}

void ReceiveShard(StagePointer self, const ShardArrived& arrived) {
  StageState& s = self->state;
  const auto link = At(arrived.link);
  const auto shard = At(arrived.shard);
  if (arrived.gradient) {
    auto& returned = s.flights.at(arrived.unit).gradients[link];
    returned.shards[shard] = arrived.buffer;
    --returned.missing;
    CountGradients(s, link);
  } else {
    StageState::IncomingLink& in = s.in[link];
    auto& waiting = in.waiting.at(static_cast<std::size_t>(arrived.unit - s.counters.forwards));
    waiting.activation.shards[shard] = arrived.buffer;
    --waiting.missing;
    CountActivations(s, in);
  }
  Pump(self);
}

}  // namespace troupe
