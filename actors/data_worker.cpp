#include "actors/data_worker.hpp"

#include <exception>
#include <utility>

#include "layout/at.hpp"

namespace troupe {
namespace {

using WorkerPointer = ActorPointer<DataWorker, DataWorkerState>;
using Sample = DataWorkerState::Sample;

/// Does `work` on the sample and measures its time. Returns whether it succeeded; else the sample is
/// answered and gone.
template <class Phase, class Do>
bool RunPhase(WorkerPointer self, const Phase& phase, Do work) {
  auto& samples = self->state.samples;
  Sample& sample = samples.at(phase.number);
  const std::int64_t begin_ns = NowNs();
  try {
    work(sample);
    sample.prepared.phase_ns[static_cast<std::size_t>(Phase::kPhase)] = NowNs() - begin_ns;
    return true;
  } catch (const std::exception& e) {
    Sample failed = std::move(sample);
    samples.erase(phase.number);
    failed.answer.deliver(MakeFailure(Failure(e.what())));
    return false;
  }
}

}  // namespace

DataWorker::behavior_type RunDataWorker(WorkerPointer self, DataWorkerConfig config) {
  self->state.config = std::move(config);
  return {
      [self](const PrepareSample& ask) -> caf::result<SamplePrepared> {
        DataWorkerState& s = self->state;
        const std::int64_t number = s.next_number++;
        Sample& sample = s.samples[number];
        sample.prepared = {ask.microbatch, {}, std::vector<std::int64_t>(kNumDataPhases)};
        sample.answer = self->make_response_promise<SamplePrepared>();
        sample.work = s.config.source->Begin(ask.sample);
        self->send(self, ReadSample{ask.microbatch, ask.sample.source, number});
        return sample.answer;
      },
      [self](const ReadSample& read) {
        if (!RunPhase(self, read, [](Sample& sample) { sample.work->Read(); })) return;
        self->send(self, TokenizeSample{read.microbatch, read.source, read.number});
      },
      [self](const TokenizeSample& tokenize) {
        if (!RunPhase(self, tokenize, [](Sample& sample) { sample.work->Tokenize(); })) return;
        self->send(self, DecodeSample{tokenize.microbatch, tokenize.source, tokenize.number});
      },
      [self](const DecodeSample& decode) {
        const auto run = [](Sample& sample) { sample.prepared.sample = sample.work->Decode(); };
        if (!RunPhase(self, decode, run)) return;
        Sample done = std::move(self->state.samples.at(decode.number));
        self->state.samples.erase(decode.number);
        done.answer.deliver(std::move(done.prepared));
      },
  };
}

}  // namespace troupe
