#include "actors/device_actor.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

#include <caf/actor_clock.hpp>

#include "actors/device_moves.hpp"
#include "modules/finite.hpp"
#include "trace/clock.hpp"
#include "trace/pass_record.hpp"

namespace troupe {
namespace {

using Self = DevicePointer;

/// What a command is, for the trace and for errors.
struct Work {
  WorkKind kind = WorkKind::kForward;
  int stage = -1;
  std::int64_t round = 0;
  std::int64_t unit = 0;
  const char* aside = nullptr;  ///< its name in errors if no round has it; the trace neither
};

Work Aside(const char* name, int stage) { return {.stage = stage, .aside = name}; }

std::string Describe(const DeviceState& s, const Work& work) {
  const auto shard = s.config.shards.find(work.stage);
  std::string text = shard == s.config.shards.end() ? "rank " + std::to_string(s.config.rank)
                                                    : ToString(shard->second);
  if (work.aside) return text + " " + work.aside;
  switch (work.kind) {
    case WorkKind::kForward:
      return text + " forward of microbatch " + std::to_string(work.unit);
    case WorkKind::kBackward:
      return text + " backward of microbatch " + std::to_string(work.unit);
    case WorkKind::kWeight:
      return text + " weight gradients of microbatch " + std::to_string(work.unit);
    case WorkKind::kReduce:
      return text + " gradient reduction";
    case WorkKind::kUpdate:
      return text + " parameter update";
    case WorkKind::kExchange:
      return text + " row exchange";
    case WorkKind::kOffload:
      return text + " offload of window " + std::to_string(work.unit);
    case WorkKind::kRestore:
      return text + " restore of window " + std::to_string(work.unit);
  }
  return text;
}

/// What a record has room for: 4 TiB.
std::uint32_t MemoryKib(const DeviceState& s) {
  if (!s.config.memory) return 0;
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(s.config.memory->MemoryInUse() / 1024, 0, kMost));
}

void Record(const DeviceState& s, const Work& work, std::int64_t begin_ns, std::int64_t end_ns) {
  if (!s.config.trace || work.aside) return;
  TraceRecord record;
  record.work = static_cast<std::uint8_t>(work.kind);
  record.stage = static_cast<std::int32_t>(work.stage);
  record.rank = static_cast<std::int16_t>(s.config.rank);
  const auto shard = s.config.shards.find(work.stage);
  record.dp = static_cast<std::int16_t>(shard == s.config.shards.end() ? 0 : shard->second.dp);
  record.unit = work.unit;
  record.round = static_cast<std::int32_t>(work.round);
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  record.memory_kib = MemoryKib(s);
  s.config.trace->Worked(record);
}

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

/// Whatever of a command's tensors is not in this process yet. Most were brought ahead, by a leader
/// or the stage; a rank in another process than its stage finds its inputs here.
void Bring(const DeviceState& s, std::vector<Buffer>& buffers, const char* what) {
  for (Buffer& buffer : buffers) buffer = s.config.tensors->FetchNow(buffer, what);
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
caf::result<Answer> AnswerLater(Self self, const Work& work, Answer answer) {
  DeviceState& s = self->state;
  using Clock = caf::actor_clock;
  const std::int64_t now_ns = self->clock().now().time_since_epoch() / Clock::duration_type(1);
  const std::int64_t begin_ns = std::max(now_ns, s.free_at_ns);
  const std::int64_t takes_ns =
      work.aside ? 0 : s.config.takes_ns(work.kind, work.stage, work.unit);
  s.free_at_ns = begin_ns + takes_ns;
  if constexpr (requires { answer.busy_ns; }) answer.busy_ns = takes_ns;
  Record(s, work, begin_ns, s.free_at_ns);
  const caf::mailbox_element& question = *self->current_mailbox_element();
  self->clock().schedule_message(
      Clock::time_point(Clock::duration_type(s.free_at_ns)), question.sender,
      caf::make_mailbox_element(caf::strong_actor_ptr(self->ctrl()), question.mid.response_id(), {},
                                std::move(answer)));
  return caf::delegated<Answer>();
}

/// Runs `body`, which returns the answer, and accounts for it. The first failure of the job is
/// raised here, with its cause; a failure that is only the echo of another passes through.
template <class Answer, class Body>
caf::result<Answer> Execute(Self self, const Work& work, Body body) {
  DeviceState& s = self->state;
  const std::int64_t begin_ns = NowNs();
  try {
    s.config.abort->ThrowIfRaised();
    Answer answer = body();
    if (s.config.takes_ns) return AnswerLater(self, work, std::move(answer));
    const std::int64_t end_ns = NowNs();
    if constexpr (requires { answer.busy_ns; }) answer.busy_ns = end_ns - begin_ns;
    Record(s, work, begin_ns, end_ns);
    return answer;
  } catch (const Aborted& aborted) {
    return MakeFailure(aborted.what());
  } catch (...) {
    const std::string cause = Describe(s, work) + ": " + TextOfThrown();
    s.config.abort->Raise(cause);
    return MakeFailure(cause);
  }
}

void MakePrograms(Self self) {
  DeviceState& s = self->state;
  std::string who = "rank " + std::to_string(s.config.rank);
  try {
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

DeviceWithMoves::behavior_type RunDevice(Self self, DeviceConfig config) {
  self->state.config = std::move(config);
  MakePrograms(self);
  auto& s = self->state;
  using Kind = WorkKind;
  return {
      [self, &s](const RunForward& run) -> caf::result<ForwardDone> {
        return Execute<ForwardDone>(
            self, {Kind::kForward, run.stage, run.round, run.pass.unit}, [&] {
              ForwardPass pass = run.pass;
              Bring(s, pass.inputs, "input of a forward");
              pass.data = Brought(s, pass.data);
              ForwardDone done{0, s.programs.at(run.stage)->Forward(pass)};
              RequireFinite(done.result.outputs, "output");
              if (!std::isfinite(done.result.loss.loss)) {
                throw std::runtime_error("the loss is " + std::to_string(done.result.loss.loss));
              }
              return done;
            });
      },
      [self, &s](const RunBackward& run) -> caf::result<BackwardDone> {
        return Execute<BackwardDone>(
            self, {Kind::kBackward, run.stage, run.round, run.pass.unit}, [&] {
              BackwardPass pass = run.pass;
              Bring(s, pass.gradients, "gradient of an output");
              BackwardDone done{0, s.programs.at(run.stage)->Backward(pass)};
              RequireFinite(done.result.gradients, "gradient of input");
              return done;
            });
      },
      [self, &s](const RunBackwardWeights& run) -> caf::result<BackwardWeightsDone> {
        return Execute<BackwardWeightsDone>(self, {Kind::kWeight, run.stage, run.round, run.unit},
                                            [&] {
                                              s.programs.at(run.stage)->BackwardWeights(run.unit);
                                              return BackwardWeightsDone{};
                                            });
      },
      [self, &s](const ReduceGradients& run) -> caf::result<GradientsReduced> {
        return Execute<GradientsReduced>(self, {Kind::kReduce, run.stage, run.round, 0}, [&] {
          GradientsReduced done{0, s.programs.at(run.stage)->ReduceGradients()};
          if (!std::isfinite(done.squared_norm)) {
            throw std::runtime_error("a parameter's gradient is not finite");
          }
          return done;
        });
      },
      [self, &s](const UpdateParameters& run) -> caf::result<ParametersUpdated> {
        return Execute<ParametersUpdated>(self, {Kind::kUpdate, run.stage, run.round, 0}, [&] {
          s.programs.at(run.stage)->Update(run.step);
          return ParametersUpdated{};
        });
      },
      [self, &s](const RunExchange& run) -> caf::result<ExchangeDone> {
        return Execute<ExchangeDone>(self, {Kind::kExchange, run.stage, run.round, run.unit}, [&] {
          std::vector<Buffer> rows = run.rows;
          Bring(s, rows, "rows of an exchange");
          if (s.config.takes_ns) return ExchangeDone{0, EmptyExchange(s, run)};
          return ExchangeDone{0, ExchangeRows(*s.config.groups.at(run.group), *run.plan, rows)};
        });
      },
      [self](const OffloadState& offload) { return BeginOffload(self, offload); },
      [self](const RestoreState& restore) { return BeginRestore(self, restore); },
      [&s](const StateMoved& moved) { EndMove(s, moved); },
      [self, &s](const Inspect& ask) -> caf::result<Inspected> {
        return Execute<Inspected>(self, Aside("inspection", ask.stage), [&] {
          return Inspected{s.programs.at(ask.stage)->Tensors(ask.kind)};
        });
      },
      [self, &s](const SaveShard& save) -> caf::result<ShardStored> {
        return Execute<ShardStored>(self, Aside("saving", save.stage), [&] {
          return ShardStored{s.config.storage.save(
              *s.programs.at(save.stage), s.config.shards.at(save.stage), save.folder, save.step)};
        });
      },
      [self, &s](const LoadShard& load) -> caf::result<ShardStored> {
        return Execute<ShardStored>(self, Aside("loading", load.stage), [&] {
          s.config.storage.load(*s.programs.at(load.stage), s.config.shards.at(load.stage),
                                load.folder);
          return ShardStored{};
        });
      },
  };
}

}  // namespace troupe
