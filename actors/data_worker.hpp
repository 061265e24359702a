// Prepares samples, one at a time, on its own thread.
//   receives  PrepareSample   the answer is SamplePrepared, or the reason why it cannot be used
#pragma once

#include <memory>
#include <string>

#include "actors/actor_base.hpp"
#include "messages/data.hpp"

namespace troupe {

struct DataWorkerConfig {
  std::shared_ptr<InputSource> source;
};

struct DataWorkerState {
  static constexpr const char* name = "data worker";
};

DataWorker::behavior_type RunDataWorker(ActorPointer<DataWorker, DataWorkerState> self,
                                        DataWorkerConfig config);

}  // namespace troupe
