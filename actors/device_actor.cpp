#include "actors/device_actor.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <stdexcept>
#include <utility>

#include <caf/actor_clock.hpp>

#include "actors/device_moves.hpp"
#include "actors/device_work.hpp"
#include "actors/promise.hpp"
#include "modules/finite.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

using Self = DevicePointer;

DeviceWork Aside(const char* name, int stage) { return {.stage = stage, .aside = name}; }

/// One line of the reason; libraries like to append backtraces.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What the exception in flight says. Programs are not ours: they may throw anything.
std::string TextOfThrown() {
  try {
    throw;
  } catch (const std::exception& e) {
    return FirstLine(e.what());
  } catch (...) {
    return "something was thrown that is no exception";
  }
}

/// Values that are no numbers stop the job where they appear, not steps later in the loss.
void RequireFinite(const std::vector<Buffer>& buffers, const char* what) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto bad = NonFinite(buffers[i]);
    if (bad) throw std::runtime_error(what + (" " + std::to_string(i)) + " is not finite: " + *bad);
  }
}

/// Whatever of a command's tensors is not in this process or not in this device's memory yet. Most
/// were brought ahead, by a leader or the stage; a rank in another process than its stage finds its
/// inputs here.
void Bring(DeviceState& s, std::vector<Buffer>& buffers, const char* what) {
  for (Buffer& buffer : buffers) {
    buffer = s.rows().Here(s.config.tensors->FetchNow(buffer, what, s.config.gpu));
  }
}

std::shared_ptr<const Inputs> Brought(const DeviceState& s,
                                      const std::shared_ptr<const Inputs>& in) {
  const auto here = [](const auto& map) {
    return std::all_of(map.begin(), map.end(), [](const auto& e) { return e.second.local(); });
  };
  if (!in || (in->tokens.local() && in->labels.local() && in->content.local() && here(in->images) &&
              here(in->positions))) {
    return in;
  }
  auto data = std::make_shared<Inputs>(*in);
  for (Buffer* buffer : {&data->tokens, &data->labels, &data->content}) {
    *buffer = s.config.tensors->FetchNow(*buffer, "tokens");
  }
  for (auto* map : {&data->images, &data->positions}) {
    for (auto& [name, buffer] : *map) buffer = s.config.tensors->FetchNow(buffer, "images");
  }
  return data;
}

/// In virtual time nobody waits in a collective: rows of the right shape, zeros instead of what the
/// others hold.
Buffer EmptyExchange(const DeviceState& s, const RunExchange& run) {
  const auto self = static_cast<std::size_t>(s.config.groups.at(run.group)->rank());
  Shape shape{run.plan->rows_out.at(self)};
  shape.insert(shape.end(), run.plan->row_shape.begin(), run.plan->row_shape.end());
  return Buffer::Zeros(shape, run.plan->dtype);
}

/// In virtual time: the device is busy from when it is free for as long as the work takes, and the
/// answer is delivered then. Nobody sleeps: the clock stands still until all have been heard.
template <class Answer>
caf::result<Answer> AnswerLater(Self self, const DeviceWork& work, Answer answer) {
  DeviceState& s = self->state;
  using Clock = caf::actor_clock;
  const std::int64_t now_ns = self->clock().now().time_since_epoch() / Clock::duration_type(1);
  const std::int64_t begin_ns = std::max(now_ns, s.free_at_ns);
  const std::int64_t takes_ns =
      work.aside ? 0 : s.config.takes_ns(work.kind, work.stage, work.unit);
  s.free_at_ns = begin_ns + takes_ns;
  if constexpr (requires { answer.busy_ns; }) answer.busy_ns = takes_ns;
  Record(s.config, work, {begin_ns, s.free_at_ns, {}});
  const caf::mailbox_element& question = *self->current_mailbox_element();
  self->clock().schedule_message(
      Clock::time_point(Clock::duration_type(s.free_at_ns)), question.sender,
      caf::make_mailbox_element(caf::strong_actor_ptr(self->ctrl()), question.mid.response_id(), {},
                                std::move(answer)));
  return caf::delegated<Answer>();
}

/// What may be wrong with values that the host can read; a device looks while it computes.
template <class Result>
void Finish(Result& result) {
  if (result.finish) std::exchange(result.finish, nullptr)(result);
}

/// Ends the job: says who failed and why, unless it is only the echo of another failure.
caf::error Failed(Self self, const DeviceWork& work) {
  DeviceState& s = self->state;
  try {
    throw;
  } catch (const Aborted& aborted) {
    return MakeFailure(aborted.what());
  } catch (...) {
    const std::string cause = Describe(s.config, work) + ": " + TextOfThrown();
    s.config.abort->Raise(cause);
    return MakeFailure(cause);
  }
}

/// Calls `body`, which returns the answer when the work is done, and accounts for it.
template <class Answer, class Body, class Then>
caf::result<Answer> RunNow(Self self, const DeviceWork& work, Body body, Then then) {
  DeviceState& s = self->state;
  WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
  try {
    s.config.abort->ThrowIfRaised();
    Answer answer = body();
    then(answer);
    if (s.config.takes_ns) return AnswerLater(self, work, std::move(answer));
    times.end_ns = NowNs();
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = times.end_ns - times.begin_ns;
    Record(s.config, work, times);
    return answer;
  } catch (...) {
    return Failed(self, work);
  }
}

/// Tells the watchdog since when the device has run what is at the head of its queue.
void NoteHead(DevicePointer self) {
  self->activity()->queue_since_ns.store(self->state.queued.empty() ? 0 : NowNs(),
                                         std::memory_order_relaxed);
}

/// All that was queued for a command has run: the rest of it, and its answer.
template <class Answer, class Then>
void Complete(Self self, const DeviceWork& work, const std::string& error, Answer& answer,
              Promise<Answer>& asker, Then then) {
  DeviceState& s = self->state;
  try {
    const WorkTimes times = s.queue->TakeTimes();
    s.config.abort->ThrowIfRaised();
    if (!error.empty()) throw std::runtime_error(error);
    then(answer);
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = times.end_ns - times.begin_ns;
    Record(s.config, work, times);
    asker.deliver(std::move(answer));
  } catch (...) {
    asker.deliver(Failed(self, work));
  }
}

/// Starts what waits, as far as there is room. The only place that queues work.
void Pump(Self self) {
  DeviceState& s = self->state;
  while (!s.waiting.empty()) {
    const bool room =
        s.waiting.front().alone ? s.queued.empty() : s.queued.size() < DeviceState::kQueuedCommands;
    if (!room) return;
    const auto start = std::move(s.waiting.front().start);
    s.waiting.pop_front();
    start();
  }
}

/// The same on a queue: `body` queues the work, and `then` and the answer come when it has run.
template <class Answer, class Body, class Then>
caf::result<Answer> RunQueued(Self self, const DeviceWork& work, Body body, Then then) {
  DeviceState& s = self->state;
  Promise<Answer> asker = self->template make_response_promise<Answer>();
  const auto start = [self, &s, work, asker, body, then, handling = CurrentHandling()]() mutable {
    const Handling around = std::exchange(CurrentHandling(), handling);
    try {
      s.config.abort->ThrowIfRaised();
      s.queue->Begin(RangeName(s.config, work));
      auto answer = std::make_shared<Answer>();
      try {
        *answer = body();
      } catch (...) {
        s.queue->End({});
        throw;
      }
      s.queued.push_back([=](const std::string& error) mutable {
        const Handling before = std::exchange(CurrentHandling(), handling);
        Complete(self, work, error, *answer, asker, then);
        CurrentHandling() = before;
      });
      // Before it can be done: whoever looks must not find an idle device with work.
      if (s.queued.size() == 1) NoteHead(self);
      s.queue->End([me = caf::actor_cast<Device>(self)](const std::string& error) {
        caf::anon_send(me, WorkEnded{error});
      });
    } catch (...) {
      asker.deliver(Failed(self, work));
    }
    CurrentHandling() = around;
  };
  s.waiting.push_back({false, start});
  Pump(self);
  return asker;
}

constexpr auto kNothingMore = [](auto&) {};

/// A command of a round. `body` does its work, or queues it, and returns the answer; `then` is for
/// what the answer can say only when the work has run.
template <class Answer, class Body, class Then = decltype(kNothingMore)>
caf::result<Answer> Execute(Self self, const DeviceWork& work, Body body,
                            Then then = kNothingMore) {
  return self->state.queue ? RunQueued<Answer>(self, work, body, then)
                           : RunNow<Answer>(self, work, body, then);
}

/// What the host does itself with the shard's memory: nothing else is under way meanwhile.
template <class Answer, class Body>
caf::result<Answer> ExecuteAlone(Self self, const DeviceWork& work, Body body) {
  DeviceState& s = self->state;
  if (!s.queue) return RunNow<Answer>(self, work, body, kNothingMore);
  Promise<Answer> asker = self->template make_response_promise<Answer>();
  s.waiting.push_back({true, [self, &s, work, asker, body]() mutable {
                         try {
                           s.config.abort->ThrowIfRaised();
                           s.queue->Synchronize();
                           asker.deliver(body());
                         } catch (...) {
                           asker.deliver(Failed(self, work));
                         }
                       }});
  Pump(self);
  return asker;
}

void MakePrograms(Self self) {
  DeviceState& s = self->state;
  std::string who = "rank " + std::to_string(s.config.rank);
  try {
    if (s.config.make_queue) {
      s.queue = s.config.make_queue(s.config.rank);
      s.queue->BindThread();
      for (auto& [number, group] : s.config.groups) {
        group =
            s.config.make_group(s.config.rank, std::move(group), s.config.group_names.at(number));
      }
    }
    if (s.config.setup_thread) s.config.setup_thread();
    for (const auto& [stage, shard] : s.config.shards) {
      who = ToString(shard);
      s.programs[stage] = s.config.make_program(shard);
    }
  } catch (const Aborted&) {
  } catch (...) {
    s.config.abort->Raise(who + ": cannot set up: " + TextOfThrown());
  }
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
        return Execute<ForwardDone>(self, {Kind::kForward, run.stage, run.round, run.pass.unit},
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
        return Execute<BackwardDone>(self, {Kind::kBackward, run.stage, run.round, run.pass.unit},
                                     work, then);
      },
      [self, &s](const RunBackwardWeights& run) -> caf::result<BackwardWeightsDone> {
        return Execute<BackwardWeightsDone>(self, {Kind::kWeight, run.stage, run.round, run.unit},
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
          if (!std::isfinite(done.squared_norm)) {
            throw std::runtime_error("a parameter's gradient is not finite");
          }
        };
        return Execute<GradientsReduced>(self, {Kind::kReduce, run.stage, run.round, 0}, work,
                                         then);
      },
      [self, &s](const UpdateParameters& run) -> caf::result<ParametersUpdated> {
        return Execute<ParametersUpdated>(self, {Kind::kUpdate, run.stage, run.round, 0},
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
        return ExecuteAlone<ShardStored>(self, Aside("saving", save.stage), [&s, save] {
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
        auto complete = std::move(s.queued.front());
        s.queued.pop_front();
        NoteHead(self);
        complete(ended.error);
        Pump(self);
      },
  };
}

}  // namespace troupe
