#include "actors/device_actor.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "actors/device_execution.hpp"

namespace troupe {
namespace {

/// Making a large model takes minutes, in which no message is handled: the device counts as busy.
void MakePrograms(DevicePointer self) {
  DeviceState& s = self->state;
  self->activity()->busy_since_ns.store(NowNs(), std::memory_order_relaxed);
  std::string shard_name = "rank " + std::to_string(s.config.rank);
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
      shard_name = ToString(shard);
      s.programs[stage] = s.config.make_program(shard);
      if (!s.config.copies) continue;
      const auto first = s.config.mirrored.find(stage);
      s.programs[stage]->PrepareCopies(first == s.config.mirrored.end() ? nullptr : &first->second);
    }
  } catch (const Aborted&) {
  } catch (...) {
    s.config.abort->Raise(shard_name + ": cannot set up: " + ThrownFailure().text);
  }
  self->activity()->busy_since_ns.store(0, std::memory_order_relaxed);
}

/// Whether the first waiting command may start.
bool HasRoom(DeviceState& s) {
  if (const auto lane = s.waiting.front().lane) {
    return s.on(*lane).queued.size() < DeviceState::kQueuedCommands;
  }
  return std::ranges::all_of(s.lanes, [](const auto& lane) { return lane.queued.empty(); });
}

}  // namespace

void NoteHead(DevicePointer self, Lane lane) {
  DeviceState& s = self->state;
  s.on(lane).head_since_ns = s.on(lane).queued.empty() ? 0 : NowNs();
  std::int64_t since_ns = 0;
  for (const DeviceState::OnLane& it : s.lanes) {
    if (it.head_since_ns != 0 && (since_ns == 0 || it.head_since_ns < since_ns)) {
      since_ns = it.head_since_ns;
    }
  }
  self->activity()->queue_since_ns.store(since_ns, std::memory_order_relaxed);
}

std::int64_t BusyFor(DeviceState& s, Lane lane, const WorkTimes& times) {
  const std::int64_t busy_ns = s.lane_times.Count(lane, times.begin_ns, times.end_ns);
  for (const Lane each : {Lane::kCompute, Lane::kCollectives}) {
    if (s.on(each).queued.empty()) s.lane_times.Emptied(each);
  }
  return busy_ns;
}

void PumpDevice(DevicePointer self) {
  DeviceState& s = self->state;
  while (!s.waiting.empty() && HasRoom(s)) {
    const auto start = std::move(s.waiting.front().start);
    s.waiting.pop_front();
    start();
  }
}

void RecordConcurrent(DeviceState& s, const DeviceWork& work) {
  const auto program = s.programs.find(work.stage);
  if (program == s.programs.end() || work.untraced) return;
  RecordConcurrent(s.config, work, *program->second);
}

namespace {

/// Virtual time: collectives do not wait, so an exchange gives rows of the right shape, all zero.
Buffer EmptyExchange(const DeviceState& s, const RunExchange& run) {
  const auto self = static_cast<std::size_t>(s.config.groups.at(run.group)->rank());
  Shape shape{run.plan->rows_out.at(self)};
  shape.insert(shape.end(), run.plan->row_shape.begin(), run.plan->row_shape.end());
  return Buffer::Zeros(shape, run.plan->dtype);
}

/// Completes the result of a pass that has run.
template <class Result>
void Finish(Result& result) {
  if (result.finish) std::exchange(result.finish, nullptr)(result);
}

DeviceWork Untraced(const char* name, int stage) { return {.stage = stage, .untraced = name}; }

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table of handlers
DeviceWithMoves::behavior_type RunDevice(DevicePointer self, DeviceConfig config) {
  self->state.config = std::move(config);
  MakePrograms(self);
  DeviceState& s = self->state;
  using Kind = WorkKind;
  return {
      [self, &s](const RunForward& run) {
        const auto work = [&s, run] {
          ForwardPass pass = run.pass;
          FetchToDevice(s, pass.inputs, "input of a forward");
          pass.data = FetchToHost(s, pass.data);
          return ForwardDone{0, s.programs.at(run.stage)->Forward(pass)};
        };
        const auto then = [](ForwardDone& done) {
          Finish(done.result);
          RequireFinite(done.result.outputs, "output");
          if (!std::isfinite(done.result.loss.loss)) {
            throw std::runtime_error("the loss is " + std::to_string(done.result.loss.loss));
          }
        };
        return Execute<ForwardDone>(self, WorkOf(Kind::kForward, run), work, then);
      },
      [self, &s](const RunBackward& run) {
        const auto work = [&s, run] {
          BackwardPass pass = run.pass;
          FetchToDevice(s, pass.gradients, "gradient of an output");
          return BackwardDone{0, s.programs.at(run.stage)->Backward(pass)};
        };
        const auto then = [](BackwardDone& done) {
          Finish(done.result);
          RequireFinite(done.result.gradients, "gradient of input");
        };
        return Execute<BackwardDone>(self, WorkOf(Kind::kBackward, run), work, then);
      },
      [self, &s](const RunBackwardWeights& run) {
        return Execute<BackwardWeightsDone>(self, WorkOf(Kind::kWeight, run), [&s, run] {
          s.programs.at(run.stage)->BackwardWeights(run.unit);
          return BackwardWeightsDone{};
        });
      },
      [self, &s](const ReduceGradients& run) {
        const auto work = [&s, run] {
          return GradientsReduced{0, s.programs.at(run.stage)->ReduceGradients()};
        };
        const auto then = [](GradientsReduced& done) {
          Finish(done.result);
          if (!std::isfinite(done.result.squared_norm)) {
            throw std::runtime_error("a parameter's gradient is not finite");
          }
        };
        return Execute<GradientsReduced>(self, WorkOf(Kind::kReduce, run), work, then);
      },
      [self, &s](const UpdateParameters& run) {
        DeviceWork work = WorkOf(Kind::kUpdate, run);
        work.place = {.step = run.step.step};
        RecordHeld(s.config, work, run.held_ns);
        return Execute<ParametersUpdated>(self, work, [&s, run] {
          s.programs.at(run.stage)->Update(run.step);
          return ParametersUpdated{};
        });
      },
      [self, &s](const RunExchange& run) {
        return Execute<ExchangeDone>(self, WorkOf(Kind::kExchange, run), [&s, run] {
          std::vector<Buffer> rows = run.rows;
          FetchToDevice(s, rows, "rows of an exchange");
          if (s.config.takes_ns) return ExchangeDone{0, EmptyExchange(s, run)};
          const Buffer got =
              ExchangeRows(*s.config.groups.at(run.group), *run.plan, rows, s.rows());
          return ExchangeDone{0, run.to_host ? s.rows().OnHost(got) : got};
        });
      },
      [self](const OffloadState& run) { return OffloadShard(self, run); },
      [self](const RestoreState& run) { return RestoreShard(self, run); },
      [self](const CopyState& copy) { return CopyShard(self, copy); },
      [&s](const StateMoved& moved) {
        const auto node = s.moves.extract(moved.number);
        if (!node.empty()) node.mapped()(moved);
      },
      [self, &s](const Inspect& ask) {
        return ExecuteAlone<Inspected>(self, Untraced("inspection", ask.stage), [&s, ask] {
          Inspected answer{s.programs.at(ask.stage)->Tensors(ask.kind)};
          if (ask.stored_only) std::erase_if(answer.pieces, IsInFolder);
          return answer;
        });
      },
      [self](const SaveShard& save) { return StoreShard(self, save); },
      [self, &s](const LoadShard& load) {
        return ExecuteAlone<ShardLoaded>(self, Untraced("loading", load.stage), [&s, load] {
          return ShardLoaded{s.config.storage.load(*s.programs.at(load.stage),
                                                   s.config.shards.at(load.stage), load.order,
                                                   s.config.open_elsewhere)};
        });
      },
      [self, &s](const WorkEnded& ended) {
        auto& queued = s.on(ended.lane).queued;
        auto end = std::move(queued.front());
        queued.pop_front();
        NoteHead(self, ended.lane);
        end(ended.error);
        PumpDevice(self);
      },
  };
}

}  // namespace troupe
