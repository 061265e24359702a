#include "actors/device_actor.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <caf/actor_clock.hpp>
#include <caf/send.hpp>

#include "trace/clock.hpp"

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
      if (s.config.copies) s.programs[stage]->PrepareCopies();
    }
  } catch (const Aborted&) {
  } catch (...) {
    s.config.abort->Raise(shard_name + ": cannot set up: " + ThrownFailure().text);
  }
  self->activity()->busy_since_ns.store(0, std::memory_order_relaxed);
}

/// The lane of a command's work.
constexpr Lane LaneOf(WorkKind kind) {
  return kind == WorkKind::kReduce ? Lane::kCollectives : Lane::kCompute;
}

/// Called when the first command of a lane changes. The watchdog learns when the device began to
/// run its current command: of two lanes the earlier time.
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

/// Returns how long the device was busy with a piece that has run on `lane`, without time that has
/// already been counted.
std::int64_t BusyFor(DeviceState& s, Lane lane, const WorkTimes& times) {
  const std::int64_t busy_ns = s.lane_times.Count(lane, times.begin_ns, times.end_ns);
  for (const Lane each : {Lane::kCompute, Lane::kCollectives}) {
    if (s.on(each).queued.empty()) s.lane_times.Emptied(each);
  }
  return busy_ns;
}

/// Whether the first waiting command may start.
bool HasRoom(DeviceState& s) {
  if (const auto lane = s.waiting.front().lane) {
    return s.on(*lane).queued.size() < DeviceState::kQueuedCommands;
  }
  return std::ranges::all_of(s.lanes, [](const auto& lane) { return lane.queued.empty(); });
}

/// Starts waiting commands while there is room. The only place that queues work.
void Pump(DevicePointer self) {
  DeviceState& s = self->state;
  while (!s.waiting.empty() && HasRoom(s)) {
    const auto start = std::move(s.waiting.front().start);
    s.waiting.pop_front();
    start();
  }
}

/// Virtual time: the work begins at `free_at_ns`, or now if that is past, and its answer is
/// delivered when it ends. The clock stands still until all messages of an instant are handled.
template <class Answer>
caf::result<Answer> AnswerLater(DevicePointer self, const DeviceWork& work, Answer answer,
                                std::int64_t& free_at_ns) {
  const DeviceConfig& config = self->state.config;
  using Clock = caf::actor_clock;
  const std::int64_t now_ns = self->clock().now().time_since_epoch() / Clock::duration_type(1);
  const std::int64_t begin_ns = std::max(now_ns, free_at_ns);
  const std::int64_t takes_ns =
      work.untraced ? 0 : config.takes_ns(work.kind, work.stage, work.unit);
  free_at_ns = begin_ns + takes_ns;
  if constexpr (requires { answer.busy_ns; }) answer.busy_ns = takes_ns;
  Record(config, work, {begin_ns, free_at_ns, {}});
  const caf::mailbox_element& question = *self->current_mailbox_element();
  self->clock().schedule_message(
      Clock::time_point(Clock::duration_type(free_at_ns)), question.sender,
      caf::make_mailbox_element(caf::strong_actor_ptr(self->ctrl()), question.mid.response_id(), {},
                                std::move(answer)));
  return caf::delegated<Answer>();
}

/// Records the collectives of the program of `work` that have ended.
void RecordConcurrent(DeviceState& s, const DeviceWork& work) {
  const auto program = s.programs.find(work.stage);
  if (program == s.programs.end() || work.untraced) return;
  RecordConcurrent(s.config, work, *program->second);
}

/// Calls `body`, which does the work and returns the answer.
template <class Answer, class Body, class Then>
caf::result<Answer> RunNow(DevicePointer self, const DeviceWork& work, Body body, Then then) {
  DeviceState& s = self->state;
  WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
  const CoreTime before = s.cores.Read();
  try {
    s.config.abort->ThrowIfRaised();
    Answer answer = body();
    then(answer);
    if (s.config.takes_ns) return AnswerLater(self, work, std::move(answer), s.free_at_ns);
    const CoreTime cores = s.cores.Since(before);
    times.end_ns = NowNs();
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = times.end_ns - times.begin_ns;
    Record(s.config, work, times, cores);
    RecordConcurrent(s, work);
    return answer;
  } catch (...) {
    return FailWork(s.config, work);
  }
}

/// Calls `start(promise)` when there is room on `lane`, or when all lanes are empty if there is
/// none. Answers for it if it throws.
template <class Answer, class Start>
caf::result<Answer> StartInTurn(DevicePointer self, const DeviceWork& work,
                                std::optional<Lane> lane, Start start) {
  DeviceState& s = self->state;
  Promise<Answer> promise = self->template make_response_promise<Answer>();
  s.waiting.push_back({lane, InHandling(CurrentHandling(), [&s, work, promise, start]() mutable {
                         try {
                           s.config.abort->ThrowIfRaised();
                           start(promise);
                         } catch (...) {
                           promise.deliver(FailWork(s.config, work));
                         }
                       })});
  Pump(self);
  return promise;
}

/// All that `work` has queued has run, or failed with `error`: finishes the answer and sends it.
template <class Answer, class Then>
void EndQueued(DeviceState& s, const DeviceWork& work, const std::string& error, Answer& answer,
               Promise<Answer>& promise, Then then) {
  try {
    const WorkTimes times = s.queue->TakeTimes(LaneOf(work.kind));
    [[maybe_unused]] const std::int64_t busy_ns = BusyFor(s, LaneOf(work.kind), times);
    s.config.abort->ThrowIfRaised();
    if (!error.empty()) throw std::runtime_error(error);
    then(answer);
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = busy_ns;
    Record(s.config, work, times);
    RecordConcurrent(s, work);
    promise.deliver(std::move(answer));
  } catch (...) {
    promise.deliver(FailWork(s.config, work));
  }
}

/// Calls `body`, which queues the work; `then` is called and the answer sent when it has run.
template <class Answer, class Body, class Then>
caf::result<Answer> RunQueued(DevicePointer self, const DeviceWork& work, Body body, Then then) {
  const Lane lane = LaneOf(work.kind);
  const auto start = [self, work, lane, body, then](Promise<Answer>& promise) {
    DeviceState& s = self->state;
    auto& queued = s.on(lane).queued;
    s.queue->Begin(RangeName(s.config, work), lane);
    auto answer = std::make_shared<Answer>();
    try {
      *answer = body();
    } catch (...) {
      s.queue->End({});
      throw;
    }
    queued.push_back(InHandling(
        CurrentHandling(), [&s, work, answer, promise, then](const std::string& error) mutable {
          EndQueued(s, work, error, *answer, promise, then);
        }));
    // Before it can be done: the watchdog must not find an idle device with work.
    if (queued.size() == 1) NoteHead(self, lane);
    try {
      s.queue->End([lane, me = caf::actor_cast<Device>(self)](const std::string& error) {
        caf::anon_send(me, WorkEnded{lane, error});
      });
    } catch (...) {  // the device has failed: no WorkEnded will come
      queued.pop_back();
      if (queued.empty()) NoteHead(self, lane);
      throw;
    }
  };
  return StartInTurn<Answer>(self, work, lane, start);
}

inline constexpr auto kNothingMore = [](auto&) {};

/// Runs a command of a round. `body` does its work, or queues it, and returns the answer; `then`
/// completes the answer when the work has run.
template <class Answer, class Body, class Then = decltype(kNothingMore)>
caf::result<Answer> Execute(DevicePointer self, const DeviceWork& work, Body body,
                            Then then = kNothingMore) {
  return self->state.queue ? RunQueued<Answer>(self, work, body, then)
                           : RunNow<Answer>(self, work, body, then);
}

/// Runs work that the host does with the shard's memory, while nothing else is under way.
template <class Answer, class Body>
caf::result<Answer> ExecuteAlone(DevicePointer self, const DeviceWork& work, Body body) {
  if (!self->state.queue) return RunNow<Answer>(self, work, body, kNothingMore);
  const auto start = [&s = self->state, work, body](Promise<Answer>& promise) {
    s.queue->Synchronize();
    WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
    Answer answer = body();
    times.end_ns = NowNs();
    Record(s.config, work, times);
    promise.deliver(std::move(answer));
  };
  return StartInTurn<Answer>(self, work, std::nullopt, start);
}

/// What a piece of work on another thread leaves.
template <class Answer>
struct Moved {
  Answer answer;
  CoreTime cores = {};  ///< of that thread
};

/// Answers `promise` when a piece of work that runs on another thread has ended. `begin(done)` begins
/// it and calls `done` on that thread, after Activity::MoveBegins; `ended()` is called after that, or
/// if `begin` throws, and returns a Moved<Answer>.
template <class Answer, class Begin, class End>
void BeginMove(DevicePointer self, const DeviceWork& work, Promise<Answer> promise, Begin begin,
               End ended) {
  DeviceState& s = self->state;
  const std::int64_t number = s.next_move++;
  // The trace shows it in the handling of its command.
  auto record = OnBehalf([&s, work](const WorkTimes& times, const CoreTime& cores) {
    Record(s.config, work, times, cores);
  });
  s.moves[number] = [&s, work, promise, record, ended](const StateMoved& moved) mutable {
    Moved<Answer> left = ended();
    if (!moved.times.error.empty()) {
      return promise.deliver(FailWork(s.config, work, moved.times.error));
    }
    record(moved.times, left.cores);
    promise.deliver(std::move(left.answer));
  };
  // The device may have ended by then: this must not keep it alive.
  auto moved = OnBehalf(
      [weak = self->address(), number, activity = self->activity()](const WorkTimes& times) {
        activity->MoveEnds();
        const auto device = caf::actor_cast<caf::strong_actor_ptr>(weak);
        if (device)
          caf::anon_send(caf::actor_cast<DeviceWithMoves>(device), StateMoved{number, times});
      });
  try {
    s.config.abort->ThrowIfRaised();
    begin(std::move(moved));
  } catch (...) {
    s.moves.erase(number);
    promise.deliver(FailWork(s.config, work));
    ended();
  }
}

/// Begins copies of a shard's state by `copy(done)`, when those that were begun before have run.
/// Answers `promise` and calls `ended` after them.
template <class Answer, class Copy>
void CopyInTurn(DevicePointer self, const DeviceWork& work, Promise<Answer> promise, Copy copy,
                const std::function<void()>& ended) {
  DeviceState& s = self->state;
  const auto begin = [activity = self->activity(), copy](StateMovedCallback done) {
    activity->MoveBegins();
    try {
      copy(std::move(done));
    } catch (...) {
      activity->MoveEnds();
      throw;
    }
  };
  const auto next = [&s, stage = work.stage] {
    auto& waiting = s.copying.at(stage);
    if (waiting.empty()) {
      s.copying.erase(stage);
      return;
    }
    const auto start = std::move(waiting.front());
    waiting.pop_front();
    start();
  };
  const auto start = [self, work, promise, begin, next, ended] {
    BeginMove<Answer>(self, work, promise, begin, [next, ended] {
      next();
      ended();
      return Moved<Answer>{};
    });
  };
  const auto [turn, free] = s.copying.try_emplace(work.stage);
  if (free) {
    start();
  } else {
    turn->second.push_back(InHandling(CurrentHandling(), start));
  }
}

/// The same for a command that is handled now.
template <class Answer, class Copy>
caf::result<Answer> RunCopy(
    DevicePointer self, const DeviceWork& work, Copy copy,
    const std::function<void()>& ended = [] {}) {
  DeviceState& s = self->state;
  if (s.config.takes_ns) {
    try {
      copy([](const WorkTimes&) {});
      return AnswerLater(self, work, Answer{}, s.copies_free_at_ns);
    } catch (...) {
      return FailWork(s.config, work);
    }
  }
  Promise<Answer> promise = self->template make_response_promise<Answer>();
  CopyInTurn(self, work, promise, copy, ended);
  return promise;
}

/// Copies a shard's state for a checkpoint, when it is on the device.
caf::result<StateCopied> Copy(DevicePointer self, const CopyState& command) {
  DeviceState& s = self->state;
  const DeviceWork work{.kind = WorkKind::kSnapshot,
                        .stage = command.stage,
                        .round = command.round,
                        .unit = command.step,
                        .place = {.step = command.step}};
  const auto copy = [&s, stage = command.stage](StateMovedCallback done) {
    s.programs.at(stage)->CopyState(std::move(done));
  };
  const auto away = s.away.find(command.stage);
  if (away == s.away.end()) return RunCopy<StateCopied>(self, work, copy);
  Promise<StateCopied> promise = self->make_response_promise<StateCopied>();
  away->second.push_back(InHandling(CurrentHandling(), [self, work, promise, copy] {
    CopyInTurn(self, work, promise, copy, [] {});
  }));
  return promise;
}

/// Writes a shard. One that was copied is written by another thread.
caf::result<ShardStored> Save(DevicePointer self, const SaveShard& save) {
  DeviceState& s = self->state;
  const bool beside = save.copied;
  DeviceWork work{.kind = beside ? WorkKind::kCheckpointWrite : WorkKind::kCheckpoint,
                  .stage = save.stage,
                  .round = save.round,
                  .unit = save.order.step,
                  .place = {.step = save.order.step}};
  const StageProgram& program = *s.programs.at(save.stage);
  const auto store = [save = s.config.storage.save, shard = s.config.shards.at(save.stage),
                      order = save.order,
                      disk = s.config.disk](const std::vector<StoredPiece>& pieces) {
    ShardStored stored{save(pieces, shard, order)};
    if (order.many_disks) stored.stored.disk = disk;
    return stored;
  };
  if (!beside) {
    return ExecuteAlone<ShardStored>(self, work, [&program, store] {
      return store(StoredPieces([&program](TensorKind kind) { return program.Tensors(kind); }));
    });
  }
  Promise<ShardStored> promise = self->make_response_promise<ShardStored>();
  const auto written = std::make_shared<Moved<ShardStored>>();
  const auto begin = [&s, &program, store, written,
                      activity = self->activity()](StateMovedCallback done) {
    const auto copied = [&program](TensorKind kind) { return program.CopiedTensors(kind); };
    auto write = [store, pieces = StoredPieces(copied), written, activity, abort = s.config.abort,
                  traced = s.config.trace != nullptr, done = std::move(done)] {
      activity->MoveBegins();
      CoreClock cores;
      if (traced) cores.Open();
      const CoreTime before = cores.Read();
      WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
      try {
        if (!abort->raised()) written->answer = store(pieces);
      } catch (...) {
        times.error = ThrownFailure().text;
      }
      times.end_ns = NowNs();
      written->cores = cores.Since(before);
      done(times);
    };
    if (s.config.writer) {
      s.config.writer->Run(std::move(write));
    } else {
      write();
    }
  };
  BeginMove<ShardStored>(self, work, promise, begin, [written] { return *written; });
  return promise;
}

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

template <class Command>
DeviceWork WorkOf(WorkKind kind, const Command& x) {
  DeviceWork work{.kind = kind, .stage = x.stage, .round = x.round};
  if constexpr (requires { x.unit; }) work.unit = x.unit;
  if constexpr (requires { x.pass.unit; }) work.unit = x.pass.unit;
  if constexpr (requires { x.place; }) work.place = x.place;
  if constexpr (requires { x.samples; }) work.samples = x.samples;
  return work;
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
      [self, &s](const OffloadState& run) {
        s.away.try_emplace(run.stage);
        return RunCopy<StateOffloaded>(self, WorkOf(Kind::kOffload, run),
                                       [&s, run](StateMovedCallback done) {
                                         s.programs.at(run.stage)->Offload(std::move(done));
                                       });
      },
      [self, &s](const RestoreState& run) {
        return RunCopy<StateRestored>(
            self, WorkOf(Kind::kRestore, run),
            [&s, run](StateMovedCallback done) {
              s.programs.at(run.stage)->Restore(run.moments, std::move(done));
            },
            [&s, run] {
              if (!run.moments) return;
              // All of it is here, or comes before it is used.
              const auto back = s.away.extract(run.stage);
              if (back.empty()) return;
              for (const auto& copy : back.mapped()) copy();
            });
      },
      [self](const CopyState& copy) { return Copy(self, copy); },
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
      [self](const SaveShard& save) { return Save(self, save); },
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
        Pump(self);
      },
  };
}

}  // namespace troupe
