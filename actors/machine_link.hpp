// A feed machine, for the dispatcher: a worker that takes several samples at a time.
//   receives  PrepareSample     the answer is SamplePrepared, or that the receiver is gone
//             MachinePrepared   from its connection
//             MachineGone       likewise; the actor ends
//
// It takes no sample that differs from its index. For each source, it also prepares the first sample with images itself
// and compares all bytes, because the index does not cover pixels. A machine that sends another sample is dismissed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "actors/actor_base.hpp"
#include "messages/data.hpp"

namespace troupe {

struct MachineLinkConfig {
  std::shared_ptr<InputSource> source;
  std::shared_ptr<FeedMachine> machine;
};

struct MachineLinkState {
  static constexpr const char* name = "feed machine";

  struct Asked {
    SampleTicket ticket;
    Promise<SamplePrepared> answer;
  };

  MachineLinkConfig config;
  std::map<std::int64_t, Asked> asked;  ///< by number
  std::int64_t next_number = 0;
  std::set<std::int32_t> compared;  ///< sources with a sample that was the same as here
};

MachineLink::behavior_type RunMachineLink(ActorPointer<MachineLink, MachineLinkState> self,
                                          MachineLinkConfig config);

}  // namespace troupe
