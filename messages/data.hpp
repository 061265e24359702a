// Messages that prepare samples: a feed asks the dispatcher of its process, which gives the samples to
// workers of the process and to feed machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"
#include "modules/feed_machines.hpp"
#include "transport/buffer.hpp"

namespace troupe {

inline auto Fields(SampleTicket& x) {
  return std::tie(x.train, x.row, x.source, x.fields, x.bytes, x.has_items);
}

/// From a dispatcher: prepare a sample. `microbatch`: the first of its unit, since the start of the run.
struct PrepareSample {
  static constexpr RequestWords kWords{"ticket", "sample", WaitUnit::kMicrobatch};
  std::int64_t microbatch = 0;
  SampleTicket sample;
};
inline auto Fields(PrepareSample& x) { return std::tie(x.microbatch, x.sample); }
struct SamplePrepared {
  std::int64_t microbatch = 0;
  Buffer sample;                       ///< as of InputSource::Prepare
  std::vector<std::int64_t> phase_ns;  ///< by DataPhase
  bool may_use = true;                 ///< InputSource::MayUse; else the sample is left out
};
inline auto Fields(SamplePrepared& x) {
  return std::tie(x.microbatch, x.sample, x.phase_ns, x.may_use);
}
/// A thread of the process or a feed machine.
using SampleWorker = caf::typed_actor<caf::replies_to<PrepareSample>::with<SamplePrepared>>;

// From a worker to itself, so that a trace shows each phase. `source`: as SampleTicket::source.
// `number`: of the sample at this worker.
struct ReadSample {
  static constexpr DataPhase kPhase = DataPhase::kRead;
  std::int64_t microbatch = 0;
  std::int32_t source = -1;
  std::int64_t number = 0;
};
struct TokenizeSample {
  static constexpr DataPhase kPhase = DataPhase::kTokenize;
  std::int64_t microbatch = 0;
  std::int32_t source = -1;
  std::int64_t number = 0;
};
struct DecodeSample {
  static constexpr DataPhase kPhase = DataPhase::kDecode;
  std::int64_t microbatch = 0;
  std::int32_t source = -1;
  std::int64_t number = 0;
};
template <class Phase>
concept DataPhaseMessage = requires {
  Phase::kPhase;
};
inline auto Fields(DataPhaseMessage auto& x) { return std::tie(x.microbatch, x.source, x.number); }

/// Answers PrepareSample with a Failure if the sample cannot be used.
using DataWorker = SampleWorker::extend<caf::reacts_to<ReadSample>, caf::reacts_to<TokenizeSample>,
                                        caf::reacts_to<DecodeSample>>;

/// From the connection of a feed machine to its link, which has asked for the sample.
struct MachinePrepared {
  std::int64_t number = 0;  ///< of the sample at the link
  std::int64_t microbatch = 0;
  std::int32_t source = -1;
  MachineSample arrived;  ///< with the time of the transfer
};
inline auto Fields(MachinePrepared& x) {
  return std::tie(x.number, x.microbatch, x.source, x.arrived.sample, x.arrived.phase_ns,
                  x.arrived.queued_ns);
}
/// The machine has gone.
struct MachineGone : NoFields {};

/// Answers PrepareSample with an error that the receiver is gone if the machine is.
using MachineLink =
    SampleWorker::extend<caf::reacts_to<MachinePrepared>, caf::reacts_to<MachineGone>>;

/// To the dispatcher: a feed machine prepares samples, too.
struct MachineJoined {
  caf::actor link;  ///< a MachineLink
  std::shared_ptr<FeedMachine> machine;
};
inline auto Fields(MachineJoined& x) { return std::tie(x.link); }
/// From the dispatcher to itself: look whether a machine is late.
struct LookForLate : NoFields {};

// `number`: of the unit at its feed, ascending.

/// From a feed: prepare the samples of a unit. Answered when all are.
struct PrepareUnit {
  static constexpr RequestWords kWords{"order of samples", "samples", WaitUnit::kMicrobatch};
  std::int64_t number = 0;
  std::int64_t microbatch = 0;  ///< the first of the unit, since the start of the run
  std::vector<SampleTicket> samples;
};
inline auto Fields(PrepareUnit& x) { return std::tie(x.number, x.microbatch, x.samples); }
struct UnitPrepared {
  std::int64_t number = 0;
  std::vector<Buffer> samples;
  DataDelay delay = {};
};
inline auto Fields(UnitPrepared& x) { return std::tie(x.number, x.samples, x.delay); }

/// From a feed: it no longer holds the samples of the unit.
struct SamplesUsed {
  std::int64_t number = 0;
};
inline auto Fields(SamplesUsed& x) { return std::tie(x.number); }

using Dispatcher =
    caf::typed_actor<caf::replies_to<PrepareUnit>::with<UnitPrepared>, caf::reacts_to<SamplesUsed>,
                     caf::reacts_to<MachineJoined>, caf::reacts_to<LookForLate>>;

}  // namespace troupe
