// The state of a shard on its way to host memory, back, and to files.
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "actors/device_execution.hpp"

namespace troupe {
namespace {

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

}  // namespace

caf::result<StateOffloaded> OffloadShard(DevicePointer self, const OffloadState& command) {
  DeviceState& s = self->state;
  s.away.try_emplace(command.stage);
  return RunCopy<StateOffloaded>(self, WorkOf(WorkKind::kOffload, command),
                                 [&s, command](StateMovedCallback done) {
                                   s.programs.at(command.stage)->Offload(std::move(done));
                                 });
}

caf::result<StateRestored> RestoreShard(DevicePointer self, const RestoreState& command) {
  DeviceState& s = self->state;
  const auto copy = [&s, command](StateMovedCallback done) {
    s.programs.at(command.stage)->Restore(command.moments, std::move(done));
  };
  const auto ended = [&s, command] {
    if (!command.moments) return;
    // All of it is here, or comes before it is used.
    const auto back = s.away.extract(command.stage);
    if (back.empty()) return;
    for (const auto& snapshot : back.mapped()) snapshot();
  };
  return RunCopy<StateRestored>(self, WorkOf(WorkKind::kRestore, command), copy, ended);
}

caf::result<StateCopied> CopyShard(DevicePointer self, const CopyState& command) {
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

caf::result<ShardStored> StoreShard(DevicePointer self, const SaveShard& save) {
  DeviceState& s = self->state;
  const bool beside = save.copied;
  DeviceWork work{.kind = !beside                ? WorkKind::kCheckpoint
                          : save.order.in_memory ? WorkKind::kMirror
                                                 : WorkKind::kCheckpointWrite,
                  .stage = save.stage,
                  .round = save.round,
                  .unit = save.order.step,
                  .place = {.step = save.order.step}};
  const StageProgram& program = *s.programs.at(save.stage);
  const auto store = [save = s.config.storage.save, order = save.order, disk = s.config.disk](
                         const std::vector<StoredPiece>& pieces, const ShardAddress& shard) {
    StoredShard stored = save(pieces, shard, order);
    if (order.many_disks) stored.disk = disk;
    return stored;
  };
  const auto own =
      [store, shard = s.config.shards.at(save.stage)](const std::vector<StoredPiece>& pieces) {
        return ShardStored{store(pieces, shard)};
      };
  if (!beside) {
    return ExecuteAlone<ShardStored>(self, work, [&program, own] {
      return own(StoredPieces([&program](TensorKind kind) { return program.Tensors(kind); }));
    });
  }
  std::function<ShardStored(const std::vector<StoredPiece>&)> store_copy = own;
  const auto first = s.config.mirrored.find(save.stage);
  if (first != s.config.mirrored.end()) {
    if (!save.order.in_memory) return ShardStored{};  // the copy is of what the other one stores
    store_copy = [store, first = first->second,
                  stage = save.stage](const std::vector<StoredPiece>& pieces) {
      return ShardStored{{}, {{first.rank, stage, store(pieces, first)}}};
    };
  }
  Promise<ShardStored> promise = self->make_response_promise<ShardStored>();
  const auto written = std::make_shared<Moved<ShardStored>>();
  const auto begin = [&s, &program, store_copy, written, in_memory = save.order.in_memory,
                      activity = self->activity()](StateMovedCallback done) {
    const auto copied = [&program](TensorKind kind) { return program.CopiedTensors(kind); };
    auto write = [store_copy, pieces = StoredPieces(copied), written, activity,
                  abort = s.config.abort, traced = s.config.trace != nullptr,
                  done = std::move(done)]() mutable {
      activity->MoveBegins();
      CoreClock cores;
      if (traced) cores.Open();
      const CoreTime before = cores.Read();
      WorkTimes times{.begin_ns = NowNs(), .end_ns = 0, .error = {}};
      try {
        if (!abort->raised()) written->answer = store_copy(pieces);
      } catch (...) {
        times.error = ThrownFailure().text;
      }
      pieces.clear();  // the next copy may use their memory
      times.end_ns = NowNs();
      written->cores = cores.Since(before);
      done(times);
    };
    // A slow disk does not hold up mirrors.
    if (const auto& thread = in_memory ? s.config.memory_writer : s.config.writer) {
      thread->Run(std::move(write));
    } else {
      write();
    }
  };
  BeginMove<ShardStored>(self, work, promise, begin, [written] { return *written; });
  return promise;
}

}  // namespace troupe
