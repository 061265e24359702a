#include "actors/device_actor.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "actors/device_moves.hpp"
#include "actors/device_run.hpp"
#include "actors/device_values.hpp"

namespace troupe {
namespace {

DeviceWork Aside(const char* name, int stage) { return {.stage = stage, .aside = name}; }

/// A large model takes minutes to make, in which no message is handled: it is busy all the same.
void MakePrograms(DevicePointer self) {
  DeviceState& s = self->state;
  self->activity()->busy_since_ns.store(NowNs(), std::memory_order_relaxed);
  std::string who = "rank " + std::to_string(s.config.rank);
  try {
    if (s.config.make_queue) {
      s.queue = s.config.make_queue(s.config.rank);
      s.queue->BindThread();
      for (auto& [number, group] : s.config.groups) {
        group = s.config.make_group(s.config.rank, std::move(group),
                                    s.config.group_names.at(number), Lane::kCompute);
      }
    }
    if (s.config.setup_thread) s.config.setup_thread();
    if (s.config.trace && !s.queue && !s.config.takes_ns) s.cores.Open();
    for (const auto& [stage, shard] : s.config.shards) {
      who = ToString(shard);
      s.programs[stage] = s.config.make_program(shard);
    }
  } catch (const Aborted&) {
  } catch (...) {
    s.config.abort->Raise(who + ": cannot set up: " + TextOfThrown());
  }
  self->activity()->busy_since_ns.store(0, std::memory_order_relaxed);
}

}  // namespace

DeviceWithMoves::behavior_type RunDevice(DevicePointer self, DeviceConfig config) {
  self->state.config = std::move(config);
  MakePrograms(self);
  auto& s = self->state;
  using Kind = WorkKind;
  return {
      [self, &s](const RunForward& run) -> caf::result<ForwardDone> {
        const auto work = [&s, run] {
          ForwardPass pass = run.pass;
          Bring(s, pass.inputs, "input of a forward");
          pass.data = Brought(s, pass.data);
          return ForwardDone{0, s.programs.at(run.stage)->Forward(pass)};
        };
        const auto then = [](ForwardDone& done) {
          Finish(done.result);
          RequireFinite(done.result.outputs, "output");
          if (!std::isfinite(done.result.loss.loss)) {
            throw std::runtime_error("the loss is " + std::to_string(done.result.loss.loss));
          }
        };
        return Execute<ForwardDone>(self,
                                    {.kind = Kind::kForward,
                                     .stage = run.stage,
                                     .round = run.round,
                                     .unit = run.pass.unit,
                                     .place = run.place,
                                     .samples = run.samples},
                                    work, then);
      },
      [self, &s](const RunBackward& run) -> caf::result<BackwardDone> {
        const auto work = [&s, run] {
          BackwardPass pass = run.pass;
          Bring(s, pass.gradients, "gradient of an output");
          return BackwardDone{0, s.programs.at(run.stage)->Backward(pass)};
        };
        const auto then = [](BackwardDone& done) {
          Finish(done.result);
          RequireFinite(done.result.gradients, "gradient of input");
        };
        return Execute<BackwardDone>(self,
                                     {.kind = Kind::kBackward,
                                      .stage = run.stage,
                                      .round = run.round,
                                      .unit = run.pass.unit,
                                      .place = run.place,
                                      .samples = run.samples},
                                     work, then);
      },
      [self, &s](const RunBackwardWeights& run) -> caf::result<BackwardWeightsDone> {
        return Execute<BackwardWeightsDone>(self,
                                            {.kind = Kind::kWeight,
                                             .stage = run.stage,
                                             .round = run.round,
                                             .unit = run.unit,
                                             .place = run.place},
                                            [&s, run] {
                                              s.programs.at(run.stage)->BackwardWeights(run.unit);
                                              return BackwardWeightsDone{};
                                            });
      },
      [self, &s](const ReduceGradients& run) -> caf::result<GradientsReduced> {
        const auto work = [&s, run] {
          return GradientsReduced{0, s.programs.at(run.stage)->ReduceGradients()};
        };
        const auto then = [](GradientsReduced& done) {
          Finish(done.result);
          if (!std::isfinite(done.result.squared_norm)) {
            throw std::runtime_error("a parameter's gradient is not finite");
          }
        };
        return Execute<GradientsReduced>(
            self,
            {.kind = Kind::kReduce, .stage = run.stage, .round = run.round, .place = run.place},
            work, then);
      },
      [self, &s](const UpdateParameters& run) -> caf::result<ParametersUpdated> {
        return Execute<ParametersUpdated>(self,
                                          {.kind = Kind::kUpdate,
                                           .stage = run.stage,
                                           .round = run.round,
                                           .place = {.step = run.step.step}},
                                          [&s, run] {
                                            s.programs.at(run.stage)->Update(run.step);
                                            return ParametersUpdated{};
                                          });
      },
      [self, &s](const RunExchange& run) -> caf::result<ExchangeDone> {
        return Execute<ExchangeDone>(
            self, {Kind::kExchange, run.stage, run.round, run.unit}, [&s, run] {
              std::vector<Buffer> rows = run.rows;
              Bring(s, rows, "rows of an exchange");
              if (s.config.takes_ns) return ExchangeDone{0, EmptyExchange(s, run)};
              return ExchangeDone{
                  0, ExchangeRows(*s.config.groups.at(run.group), *run.plan, rows, s.rows())};
            });
      },
      [self](const OffloadState& offload) { return BeginOffload(self, offload); },
      [self](const RestoreState& restore) { return BeginRestore(self, restore); },
      [&s](const StateMoved& moved) { EndMove(s, moved); },
      [self, &s](const Inspect& ask) -> caf::result<Inspected> {
        return ExecuteAlone<Inspected>(self, Aside("inspection", ask.stage), [&s, ask] {
          return Inspected{s.programs.at(ask.stage)->Tensors(ask.kind)};
        });
      },
      [self, &s](const SaveShard& save) -> caf::result<ShardStored> {
        const DeviceWork work{.kind = Kind::kCheckpoint,
                              .stage = save.stage,
                              .round = save.round,
                              .unit = save.step,
                              .place = {.step = save.step}};
        return ExecuteAlone<ShardStored>(self, work, [&s, save] {
          return ShardStored{s.config.storage.save(
              *s.programs.at(save.stage), s.config.shards.at(save.stage), save.folder, save.step)};
        });
      },
      [self, &s](const LoadShard& load) -> caf::result<ShardStored> {
        return ExecuteAlone<ShardStored>(self, Aside("loading", load.stage), [&s, load] {
          s.config.storage.load(*s.programs.at(load.stage), s.config.shards.at(load.stage),
                                load.folder);
          return ShardStored{};
        });
      },
      [self, &s](const WorkEnded& ended) {
        auto& queued = s.on(ended.lane).queued;
        auto complete = std::move(queued.front());
        queued.pop_front();
        NoteHead(self, ended.lane);
        complete(ended.error);
        Pump(self);
      },
  };
}

}  // namespace troupe
