#include "actors/machine_link.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

namespace troupe {
namespace {

using LinkPointer = ActorPointer<MachineLink, MachineLinkState>;

/// Answers all open requests; the dispatcher gives their tickets to others.
void End(LinkPointer self) {
  self->RefuseAll(caf::make_error(caf::sec::request_receiver_down));
  self->quit();
}

/// The way of a sample, and of the request for it, is the time in which the machine did nothing for it.
std::vector<std::int64_t> WithTransfer(const MachineSample& sample, std::int64_t since_ns) {
  std::vector<std::int64_t> phase_ns = sample.phase_ns;
  phase_ns.resize(kNumDataPhases);
  const std::int64_t there_ns = std::accumulate(phase_ns.begin(), phase_ns.end(), sample.queued_ns);
  phase_ns[static_cast<std::size_t>(DataPhase::kTransfer)] =
      std::max<std::int64_t>(0, NowNs() - since_ns - there_ns);
  return phase_ns;
}

void Answer(LinkPointer self, const MachinePrepared& prepared) {
  MachineLinkState& s = self->state;
  // A machine may still send what the job has asked for before it met again.
  const auto found = s.asked.find(prepared.number);
  if (found == s.asked.end()) return;
  MachineLinkState::Asked& asked = found->second;
  const MachineSample& sample = prepared.sample;
  try {
    const bool may_use = s.config.source->MayUse(asked.ask.sample, sample.sample);
    asked.answer.deliver(SamplePrepared{asked.ask.microbatch, sample.sample,
                                        WithTransfer(sample, asked.since_ns), may_use});
    s.asked.erase(found);
  } catch (const std::exception& e) {
    s.config.machine->Dismiss(e.what());
    End(self);
  }
}

}  // namespace

MachineLink::behavior_type RunMachineLink(LinkPointer self, MachineLinkConfig config) {
  MachineLinkState& s = self->state;
  s.config = std::move(config);
  const auto me = caf::actor_cast<caf::actor>(self);
  s.config.machine->Report({.prepared =
                                [me](std::int64_t number, const MachineSample& sample) {
                                  caf::anon_send(me, MachinePrepared{number, sample});
                                },
                            .gone = [me] { caf::anon_send(me, MachineGone{}); }});
  return {
      [self, &s](const PrepareSample& ask) -> caf::result<SamplePrepared> {
        const std::int64_t number = s.config.machine->Ask(ask.microbatch, ask.sample);
        auto& asked = s.asked[number];
        asked = {ask, NowNs(), self->make_response_promise<SamplePrepared>()};
        return asked.answer;
      },
      [self](const MachinePrepared& prepared) { Answer(self, prepared); },
      [self](const MachineGone&) { End(self); },
  };
}

}  // namespace troupe
