#include "actors/machine_link.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {
namespace {

using LinkPointer = ActorPointer<MachineLink, MachineLinkState>;

/// Answers all open requests; the dispatcher gives their tickets to others.
void End(LinkPointer self) {
  self->RefuseAll(caf::make_error(caf::sec::request_receiver_down));
  self->quit();
}

/// Adds the time of the transfer: the ways of the request and of the sample. A machine may state any times.
void AddTransfer(std::int64_t since_ns, MachineSample& sample) {
  std::int64_t left_ns = NowNs() - since_ns;
  const auto take = [&left_ns](std::int64_t& ns) {
    ns = std::clamp<std::int64_t>(ns, 0, left_ns);
    left_ns -= ns;
  };
  take(sample.queued_ns);
  sample.phase_ns.resize(kNumDataPhases);
  for (std::int64_t& ns : sample.phase_ns) take(ns);
  sample.phase_ns[static_cast<std::size_t>(DataPhase::kTransfer)] = left_ns;
}

Promise<SamplePrepared> AskMachine(LinkPointer self, const PrepareSample& ask) {
  MachineLinkState& s = self->state;
  const std::int64_t number = s.next_number++;
  MachineLinkState::Asked& asked = s.asked[number];
  asked = {ask.sample, self->make_response_promise<SamplePrepared>()};
  MachinePrepared prepared{number, ask.microbatch, ask.sample.source, {}};
  s.config.machine->Ask(ask.microbatch, ask.sample,
                        OnBehalf([me = caf::actor_cast<caf::actor>(self), prepared,
                                  since_ns = NowNs()](const MachineSample& sample) mutable {
                          prepared.arrived = sample;
                          AddTransfer(since_ns, prepared.arrived);
                          caf::anon_send(me, std::move(prepared));
                        }));
  return asked.answer;
}

/// Returns the sample as it is prepared here; none if it cannot be.
std::optional<Buffer> PreparedHere(const InputSource& source, const SampleTicket& ticket) {
  try {
    return source.Prepare(ticket);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Prepares the sample here and compares. Returns false if it cannot be prepared here. Throws if the samples
/// differ.
bool IsAsHere(const InputSource& source, const SampleTicket& ticket, const Buffer& sample) {
  const std::optional<Buffer> here = PreparedHere(source, ticket);
  if (!here || !source.MayUse(ticket, *here)) return false;  // a worker says why
  if (here->num_bytes() == sample.num_bytes() &&
      std::memcmp(here->data(), sample.data(), sample.num_bytes()) == 0) {
    return true;
  }
  throw std::runtime_error("its sample differs from the one prepared here (" +
                           source.NameOf(ticket) + "): compare its copy of the files");
}

void OnPrepared(LinkPointer self, const MachinePrepared& prepared) {
  MachineLinkState& s = self->state;
  const MachineSample& arrived = prepared.arrived;
  try {
    const auto found = s.asked.find(prepared.number);
    const SampleTicket& ticket = found->second.ticket;
    bool may_use = s.config.source->MayUse(ticket, arrived.sample);
    if (may_use && ticket.has_items && !s.compared.contains(ticket.source)) {
      may_use = IsAsHere(*s.config.source, ticket, arrived.sample);
      if (may_use) s.compared.insert(ticket.source);
    }
    found->second.answer.deliver(
        SamplePrepared{prepared.microbatch, arrived.sample, arrived.phase_ns, may_use});
    s.asked.erase(found);
  } catch (const std::exception& e) {
    s.config.machine->Dismiss(e.what());
    End(self);
  }
}

}  // namespace

MachineLink::behavior_type RunMachineLink(LinkPointer self, MachineLinkConfig config) {
  self->state.config = std::move(config);
  self->state.config.machine->Watch(
      [me = caf::actor_cast<caf::actor>(self)] { caf::anon_send(me, MachineGone{}); });
  return {
      [self](const PrepareSample& ask) -> caf::result<SamplePrepared> {
        return AskMachine(self, ask);
      },
      [self](const MachinePrepared& prepared) { OnPrepared(self, prepared); },
      [self](const MachineGone&) { End(self); },
  };
}

}  // namespace troupe
