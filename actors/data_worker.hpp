// Prepares samples on its own thread, phase by phase.
//   receives  PrepareSample   the answer is SamplePrepared, or the reason why it cannot be used
//             ReadSample, TokenizeSample, DecodeSample   from itself
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "actors/actor_base.hpp"
#include "messages/data.hpp"

namespace troupe {

struct DataWorkerConfig {
  std::shared_ptr<InputSource> source;
};

struct DataWorkerState {
  static constexpr const char* name = "data worker";

  struct Sample {
    std::unique_ptr<SampleWork> work;
    SamplePrepared prepared;
    Promise<SamplePrepared> answer;
  };

  DataWorkerConfig config;
  std::map<std::int64_t, Sample> samples;  ///< under preparation, by number
  std::int64_t next_number = 0;
};

DataWorker::behavior_type RunDataWorker(ActorPointer<DataWorker, DataWorkerState> self,
                                        DataWorkerConfig config);

}  // namespace troupe
