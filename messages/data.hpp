// Messages that prepare samples: a feed asks the dispatcher of its process, which gives the samples to
// workers.
#pragma once

#include <cstdint>
#include <vector>

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include "messages/fields.hpp"
#include "transport/buffer.hpp"

namespace troupe {

inline auto Fields(SampleTicket& x) { return std::tie(x.train, x.row, x.fields, x.bytes); }

/// From a dispatcher: prepare a sample of a unit.
struct PrepareSample {
  static constexpr RequestWords kWords{"ticket", "sample", WaitUnit::kMicrobatch};
  std::int64_t unit = 0;
  SampleTicket sample;
};
inline auto Fields(PrepareSample& x) { return std::tie(x.unit, x.sample); }
struct SamplePrepared {
  std::int64_t unit = 0;
  Buffer sample;  ///< as of InputSource::Prepare
};
inline auto Fields(SamplePrepared& x) { return std::tie(x.unit, x.sample); }

/// Answers with a Failure if the sample cannot be used.
using DataWorker = caf::typed_actor<caf::replies_to<PrepareSample>::with<SamplePrepared>>;

/// From a feed: prepare the samples of a unit. Answered when all are.
struct PrepareUnit {
  static constexpr RequestWords kWords{"order of samples", "samples", WaitUnit::kMicrobatch};
  std::int64_t unit = 0;
  std::int64_t round = 0;
  std::int64_t first_microbatch = 0;  ///< of the unit, in its round
  std::vector<SampleTicket> samples;
};
inline auto Fields(PrepareUnit& x) {
  return std::tie(x.unit, x.round, x.first_microbatch, x.samples);
}
struct UnitPrepared {
  std::int64_t unit = 0;
  std::vector<Buffer> samples;
};
inline auto Fields(UnitPrepared& x) { return std::tie(x.unit, x.samples); }

/// From a feed: it holds the samples of the unit no more.
struct SamplesUsed {
  std::int64_t unit = 0;
};
inline auto Fields(SamplesUsed& x) { return std::tie(x.unit); }

using Dispatcher =
    caf::typed_actor<caf::replies_to<PrepareUnit>::with<UnitPrepared>, caf::reacts_to<SamplesUsed>>;

}  // namespace troupe
