#include "actors/dispatcher_actor.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

using DispatcherPointer = ActorPointer<Dispatcher, DispatcherState>;
using Order = DispatcherState::Order;
using OrderKey = DispatcherState::OrderKey;

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
  if (order.failed.empty()) {
    order.answer.deliver(UnitPrepared{order.unit, order.samples, DelayOf(order)});
  } else {
    order.answer.deliver(MakeFailure(order.failed.begin()->second));
  }
}

/// Whether the feed needs this unit before its others.
bool IsNext(const DispatcherState& s, const OrderKey& key) {
  const Order& order = s.orders.at(key);
  return std::ranges::none_of(s.orders, [&](const auto& other) {
    return other.second.feed == order.feed && other.second.unit < order.unit;
  });
}

/// Returns the order whose next ticket may be given; null if there is none.
std::pair<const OrderKey, Order>* Choose(DispatcherState& s) {
  for (auto& entry : s.orders) {
    const Order& order = entry.second;
    if (!order.again.empty()) return &entry;  // its bytes are counted
    if (order.next == order.tickets.size()) continue;
    const bool fits = s.bytes + order.tickets[order.next].bytes <= s.config.most_bytes;
    if (fits || IsNext(s, entry.first)) return &entry;
  }
  return nullptr;
}

/// Takes the next ticket of an order.
std::size_t TakeTicket(DispatcherState& s, Order& order) {
  if (!order.again.empty()) {
    const std::size_t ticket = order.again.back();
    order.again.pop_back();
    return ticket;
  }
  s.bytes += order.tickets[order.next].bytes;
  return order.next++;
}

void Keep(DispatcherState& s, std::size_t worker, std::size_t ticket,
          const SamplePrepared& prepared, Order& order) {
  order.samples[ticket] = prepared.sample;
  const std::string& process = s.config.workers[worker].process;
  for (std::size_t phase = 0; phase < prepared.phase_ns.size(); ++phase) {
    const auto kind = static_cast<DataPhase>(phase);
    order.ns[{order.tickets[ticket].source, kind, process}] += prepared.phase_ns[phase];
  }
}

/// No sample after the one that failed can change the outcome.
void KeepFailure(std::size_t ticket, const caf::error& reason, Order& order) {
  order.failed.emplace(ticket, FailureOf(reason));
  order.missing -= order.tickets.size() - order.next;
  order.tickets.resize(order.next);
}

void Give(DispatcherPointer self, std::size_t worker, const OrderKey& key, Order& order) {
  DispatcherState& s = self->state;
  const std::size_t ticket = TakeTicket(s, order);
  const auto end = [self, worker, key](auto keep) {
    DispatcherState& now = self->state;
    now.free.push_back(worker);
    Order& given = now.orders.at(key);
    --given.missing;
    keep(given);
    AnswerIfComplete(given);
    Pump(self);
  };
  const auto lost = [self, key, ticket](const caf::error& reason) {
    DispatcherState& now = self->state;
    if (++now.gone == now.config.workers.size()) return Fail(self, reason);
    now.orders.at(key).again.push_back(ticket);
    Pump(self);
  };
  self->request(s.config.workers[worker].actor, caf::infinite,
                PrepareSample{key.microbatch, order.tickets[ticket]})
      .then(
          [self, end, worker, ticket](const SamplePrepared& prepared) {
            end([&](Order& given) { Keep(self->state, worker, ticket, prepared, given); });
          },
          [end, lost, ticket](const caf::error& reason) {
            if (IsReceiverGone(reason)) return lost(reason);
            end([&](Order& given) { KeepFailure(ticket, reason, given); });
          });
}

/// Gives tickets to free workers. The only place that does.
void Pump(DispatcherPointer self) {
  DispatcherState& s = self->state;
  while (!s.free.empty()) {
    auto* const chosen = Choose(s);
    if (chosen == nullptr) return;
    const std::size_t worker = s.free.back();
    s.free.pop_back();
    Give(self, worker, chosen->first, chosen->second);
  }
}

}  // namespace

Dispatcher::behavior_type RunDispatcher(DispatcherPointer self, DispatcherConfig config) {
  for (std::size_t i = config.workers.size(); i-- > 0;) self->state.free.push_back(i);
  self->state.config = std::move(config);
  return {
      [self](const PrepareUnit& ask) -> caf::result<UnitPrepared> {
        DispatcherState& s = self->state;
        Order order;
        order.feed = self->current_sender()->address();
        order.unit = ask.number;
        order.tickets = ask.samples;
        order.samples.resize(ask.samples.size());
        order.missing = ask.samples.size();
        order.answer = self->make_response_promise<UnitPrepared>();
        const OrderKey key{ask.microbatch, s.next_order++};
        Order& kept = s.orders.emplace(key, std::move(order)).first->second;
        AnswerIfComplete(kept);  // a unit may have no samples
        Pump(self);
        return kept.answer;
      },
      [self](const SamplesUsed& used) {
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
          s.bytes -= found->second.tickets[i].bytes;
        }
        s.orders.erase(found);
        Pump(self);
      },
  };
}

}  // namespace troupe
