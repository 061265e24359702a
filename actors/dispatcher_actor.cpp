#include "actors/dispatcher_actor.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {
namespace {

using DispatcherPointer = ActorPointer<Dispatcher, DispatcherState>;
using Order = DispatcherState::Order;
using OrderKey = DispatcherState::OrderKey;
using Wanted = DispatcherState::Wanted;
using Worker = DispatcherState::Worker;

constexpr double kLateTimes = 4;
constexpr double kMostPatience = 10;
/// The weight of the last sample in the mean.
constexpr double kNewest = 0.1;

void Pump(DispatcherPointer self);

DataDelay DelayOf(const Order& order) {
  const auto most =
      std::ranges::max_element(order.ns, {}, [](const auto& each) { return each.second; });
  if (most == order.ns.end()) return {};
  const auto& [source, phase, process] = most->first;
  return {source, phase, process, most->second};
}

/// Answers the feed once the outcome of each sample that a worker has got is known.
void AnswerIfComplete(Order& order) {
  if (order.missing > 0) return;
  if (!order.failed.empty()) {
    return order.answer.deliver(MakeFailure(order.failed.begin()->second));
  }
  UnitPrepared prepared{order.unit, {}, DelayOf(order)};
  for (const Wanted& sample : order.samples) prepared.samples.push_back(sample.sample);
  order.answer.deliver(std::move(prepared));
}

/// Whether the feed needs this unit before its others.
bool IsNext(const DispatcherState& s, const OrderKey& key) {
  const Order& order = s.orders.at(key);
  return std::ranges::none_of(s.orders, [&](const auto& other) {
    return other.second.feed == order.feed && other.second.unit < order.unit;
  });
}

/// After how long a machine is late.
std::int64_t LateAfterNs(const DispatcherState& s) {
  const auto patience = static_cast<double>(s.config.patience.count());
  return static_cast<std::int64_t>(
      std::clamp(kLateTimes * s.mean_ns, patience, kMostPatience * patience));
}

void SetLate(bool is_late, Worker& worker) {
  if (std::exchange(worker.is_late, is_late) != is_late) worker.machine->SetLate(is_late);
}

/// Returns the machine that alone has the ticket, or null.
Worker* MachineWith(DispatcherState& s, const Wanted& sample) {
  if (sample.is_done || sample.given.size() != 1) return nullptr;
  const auto worker = s.workers.find(sample.given.begin()->first);
  return worker != s.workers.end() && worker->second.machine ? &worker->second : nullptr;
}

/// Calls `visit` for each ticket that a machine alone has: with the order, the ticket, and the machine.
template <class Visit>
void VisitMachineTickets(DispatcherState& s, const Visit& visit) {
  for (auto& [key, order] : s.orders) {
    for (std::size_t ticket = 0; ticket < order.next; ++ticket) {
      if (Worker* const worker = MachineWith(s, order.samples[ticket]))
        visit(order, ticket, *worker);
    }
  }
}

/// Notes the tickets with which machines are late, and the machines that have not answered since. These are late
/// with all their tickets. Returns when to look again.
std::optional<std::int64_t> NoteLate(DispatcherState& s) {
  const std::int64_t late_after_ns = LateAfterNs(s);
  const std::int64_t now_ns = NowNs();
  const auto is_overdue = [&](const Order& order, std::size_t ticket) {
    return order.samples[ticket].given.begin()->second + late_after_ns <= now_ns;
  };
  std::optional<std::int64_t> next_ns;
  VisitMachineTickets(s, [&](const Order& order, std::size_t ticket, Worker& worker) {
    const std::int64_t given_ns = order.samples[ticket].given.begin()->second;
    const std::int64_t silent_ns = std::max(given_ns, worker.answered_ns);
    if (silent_ns + late_after_ns <= now_ns) SetLate(true, worker);
    if (worker.is_late) return;
    const std::int64_t since_ns = is_overdue(order, ticket) ? silent_ns : given_ns;
    next_ns = std::min(next_ns.value_or(since_ns + late_after_ns), since_ns + late_after_ns);
  });
  VisitMachineTickets(s, [&](Order& order, std::size_t ticket, const Worker& worker) {
    if (!worker.is_late && !is_overdue(order, ticket)) return;
    if (std::ranges::count(order.late, ticket) == 0) order.late.push_back(ticket);
  });
  return next_ns;
}

/// Returns a ticket of the order that may be given to the worker.
std::optional<std::size_t> Take(DispatcherState& s, const Worker& worker, const OrderKey& key,
                                Order& order) {
  for (const std::size_t ticket : order.again) {  // its bytes are counted
    if (worker.machine && order.samples[ticket].decides_here) continue;
    std::erase(order.again, ticket);
    return ticket;
  }
  while (!worker.machine && !order.late.empty()) {
    const std::size_t ticket = order.late.front();
    order.late.erase(order.late.begin());
    if (MachineWith(s, order.samples.at(ticket)) != nullptr) return ticket;
  }
  if (order.next == order.samples.size()) return std::nullopt;
  const std::int64_t bytes = order.samples[order.next].ticket.bytes;
  if (s.bytes + bytes > s.config.most_bytes && !IsNext(s, key)) return std::nullopt;
  s.bytes += bytes;
  return order.next++;
}

void KeepSample(const std::string& where, const SamplePrepared& prepared, Wanted& sample,
                Order& order) {
  sample.sample = prepared.sample;
  for (std::size_t phase = 0; phase < prepared.phase_ns.size(); ++phase) {
    const auto kind = static_cast<DataPhase>(phase);
    order.ns[{sample.ticket.source, kind, where}] += prepared.phase_ns[phase];
  }
}

/// No sample after the one that failed can change the outcome.
void KeepFailure(std::size_t ticket, const caf::error& reason, Order& order) {
  order.failed.emplace(ticket, FailureOf(reason));
  order.missing -= order.samples.size() - order.next;
  order.samples.resize(order.next);
}

/// What a worker has said about a ticket. It may be another one that has prepared it, and the feed may not
/// hold it any more.
class Outcome {
 public:
  Outcome(DispatcherPointer self, int worker, const OrderKey& key, std::size_t ticket)
      : self_(self), worker_(worker), key_(key), ticket_(ticket) {}

  void Prepared(const SamplePrepared& prepared) const {
    const Worker& worker = Free();
    if (worker.machine) NoteTime();
    if (Wanted* const sample = Waiting()) {
      sample->given.erase(worker_);
      if (prepared.may_use) {
        KeepSample(worker.where, prepared, *sample, order());
        KeepLate(*sample);
        End(*sample);
      } else {
        sample->decides_here = true;
        GiveAgain(*sample);
      }
    }
    Pump(self_);
  }

  void Failed(const caf::error& reason) const {
    if (IsReceiverGone(reason)) return Gone(reason);
    Free();
    if (Wanted* const sample = Waiting()) {
      sample->given.erase(worker_);
      KeepFailure(ticket_, reason, order());
      End(order().samples[ticket_]);
    }
    Pump(self_);
  }

 private:
  DispatcherState& state() const { return self_->state; }
  Order& order() const { return state().orders.at(key_); }
  Worker& Free() const {
    Worker& worker = state().workers.at(worker_);
    ++worker.free;
    worker.answered_ns = NowNs();
    SetLate(false, worker);
    return worker;
  }
  /// Returns null if the outcome is known, or the feed no longer holds the unit.
  Wanted* Waiting() const {
    const auto found = state().orders.find(key_);
    if (found == state().orders.end()) return nullptr;
    Wanted& sample = found->second.samples[ticket_];
    return sample.is_done ? nullptr : &sample;
  }
  /// A machine that has the sample still was too late: the unit has waited for it.
  void KeepLate(const Wanted& sample) const {
    for (const auto& [number, since_ns] : sample.given) {
      const auto other = state().workers.find(number);
      if (other == state().workers.end() || !other->second.machine) continue;
      order().ns[{sample.ticket.source, DataPhase::kTransfer, other->second.where}] +=
          NowNs() - since_ns;
    }
  }
  void End(Wanted& sample) const {
    sample.is_done = true;
    --order().missing;
    AnswerIfComplete(order());
  }
  void GiveAgain(const Wanted& sample) const {
    if (sample.given.empty()) order().again.push_back(ticket_);
  }
  void Gone(const caf::error& reason) const {
    state().workers.erase(worker_);
    if (state().workers.empty()) return Fail(self_, reason);
    if (Wanted* const sample = Waiting()) {
      sample->given.erase(worker_);
      GiveAgain(*sample);
    }
    Pump(self_);
  }
  /// A machine that was stopped must not make the others' samples wait for longer than the most patience.
  void NoteTime() const {
    double& mean = state().mean_ns;
    const auto most = kMostPatience * static_cast<double>(state().config.patience.count());
    const double ns = std::min(static_cast<double>(NowNs() - since_ns_), most);
    mean = mean == 0 ? ns : (1 - kNewest) * mean + kNewest * ns;
  }

  DispatcherPointer self_;
  int worker_;
  OrderKey key_;
  std::size_t ticket_;
  std::int64_t since_ns_ = NowNs();
};

void Give(DispatcherPointer self, int number, const OrderKey& key, Order& order,
          std::size_t ticket) {
  Worker& worker = self->state.workers.at(number);
  --worker.free;
  Wanted& sample = order.samples[ticket];
  sample.given[number] = NowNs();
  const Outcome outcome(self, number, key, ticket);
  self->request(worker.actor, caf::infinite, PrepareSample{key.microbatch, sample.ticket})
      .then([outcome](const SamplePrepared& prepared) { outcome.Prepared(prepared); },
            [outcome](const caf::error& reason) { outcome.Failed(reason); });
}

/// Gives the worker the first ticket that it may have. Returns whether there was one.
bool GiveOne(DispatcherPointer self, int number) {
  for (auto& [key, order] : self->state.orders) {
    if (order.missing == 0) continue;
    const auto ticket = Take(self->state, self->state.workers.at(number), key, order);
    if (!ticket) continue;
    Give(self, number, key, order, *ticket);
    return true;
  }
  return false;
}

/// Returns the number of the machine, or of the thread of the process, with most free places; -1 if all are busy or
/// late.
int Freest(const DispatcherState& s, bool is_machine) {
  int freest = -1;
  int most = 0;
  for (const auto& [number, worker] : s.workers) {
    if ((worker.machine != nullptr) != is_machine || worker.free <= most || worker.is_late)
      continue;
    freest = number;
    most = worker.free;
  }
  return freest;
}

/// Gives tickets to free workers, to machines first. Only Pump calls it.
void GiveAll(DispatcherPointer self) {
  const DispatcherState& s = self->state;
  for (const bool is_machine : {true, false}) {
    for (int number = Freest(s, is_machine); number >= 0; number = Freest(s, is_machine)) {
      if (!GiveOne(self, number)) break;  // there is none for the others, either
    }
  }
}

/// Gives tickets to free workers and notes late machines. Called after each change.
void Pump(DispatcherPointer self) {
  DispatcherState& s = self->state;
  GiveAll(self);
  const bool any_machine = std::ranges::any_of(
      s.workers, [](const auto& entry) { return entry.second.machine != nullptr; });
  if (!any_machine || s.looks) return;
  const auto next_ns = NoteLate(s);
  GiveAll(self);  // what is late
  if (next_ns) {
    s.looks = true;
    const std::chrono::nanoseconds wait(std::max<std::int64_t>(0, *next_ns - NowNs()));
    self->delayed_send(self, wait, LookForLate{});
  }
}

Promise<UnitPrepared> Accept(DispatcherPointer self, const PrepareUnit& ask) {
  DispatcherState& s = self->state;
  Order order;
  order.feed = self->current_sender()->address();
  order.unit = ask.number;
  for (const SampleTicket& ticket : ask.samples) order.samples.push_back({ticket});
  order.missing = ask.samples.size();
  order.answer = self->make_response_promise<UnitPrepared>();
  const OrderKey key{ask.microbatch, s.next_order++};
  Order& kept = s.orders.emplace(key, std::move(order)).first->second;
  AnswerIfComplete(kept);  // a unit may have no samples
  Pump(self);
  return kept.answer;
}

void Release(DispatcherPointer self, const SamplesUsed& used) {
  DispatcherState& s = self->state;
  const auto feed = self->current_sender()->address();
  const auto found = std::ranges::find_if(s.orders, [&](const auto& entry) {
    return entry.second.feed == feed && entry.second.unit == used.number;
  });
  if (found == s.orders.end()) {
    return Fail(self, MakeFailure(Failure(s.config.name + ": expected an order of unit " +
                                          std::to_string(used.number) + ", there is none")));
  }
  for (std::size_t i = 0; i < found->second.next; ++i) {
    s.bytes -= found->second.samples[i].ticket.bytes;
  }
  s.orders.erase(found);
  Pump(self);
}

}  // namespace

Dispatcher::behavior_type RunDispatcher(DispatcherPointer self, DispatcherConfig config) {
  DispatcherState& s = self->state;
  for (const SampleWorker& worker : config.workers) {
    s.workers[s.next_worker++] = {.actor = worker, .where = config.process};
  }
  s.config = std::move(config);
  return {
      [self](const PrepareUnit& ask) -> caf::result<UnitPrepared> { return Accept(self, ask); },
      [self](const SamplesUsed& used) { Release(self, used); },
      [self, &s](const MachineJoined& joined) {
        s.workers[s.next_worker++] = {.actor = caf::actor_cast<SampleWorker>(joined.link),
                                      .where = joined.machine->name(),
                                      .free = joined.machine->credits(),
                                      .machine = joined.machine};
        Pump(self);
      },
      [self, &s](const LookForLate&) {
        s.looks = false;
        Pump(self);
      },
  };
}

}  // namespace troupe
