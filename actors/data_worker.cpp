#include "actors/data_worker.hpp"

#include <exception>

namespace troupe {

DataWorker::behavior_type RunDataWorker(ActorPointer<DataWorker, DataWorkerState> /*self*/,
                                        DataWorkerConfig config) {
  return {
      [source = std::move(config.source)](const PrepareSample& ask) -> caf::result<SamplePrepared> {
        try {
          return SamplePrepared{ask.unit, source->Prepare(ask.sample)};
        } catch (const std::exception& e) {
          return MakeFailure(Failure(e.what()));
        }
      }};
}

}  // namespace troupe
