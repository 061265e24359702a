// Queues of devices whose work runs when the test says so, and programs that compute on them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "modules/work_queue.hpp"
#include "modules/wrapped_program.hpp"
#include "trace/clock.hpp"

namespace troupe {

/// What has been queued on all devices of a test and has not run.
class HandWork {
 public:
  bool empty() const {
    for (const auto& [rank, queue] : queues_) {
      if (!queue.empty()) return false;
    }
    return true;
  }
  bool has_work(int rank) const {
    return std::ranges::any_of(queues_, [rank](const auto& entry) {
      return entry.first.first == rank && !entry.second.empty();
    });
  }
  void Add(int rank, Lane lane, std::string name, std::function<void(const std::string&)> done) {
    auto& queue = queues_[{rank, lane}];
    queue.push_back({std::move(name), std::move(done), next_number_++});
    most_[{rank, lane}] = std::max(most_[{rank, lane}], queue.size());
    for (const auto& [place, pieces] : queues_) {
      if (place.first != rank) continue;
      for (const auto& waiting : pieces) together_[rank] += waiting.name + ";";
    }
    together_[rank] += '\n';
  }
  /// Runs the oldest piece on one of the lanes of all ranks; without `random`, the oldest of all.
  void RunOne(std::mt19937_64* random) {
    std::vector<Place> places;
    for (const auto& [place, queue] : queues_) {
      if (!queue.empty()) places.push_back(place);
    }
    const Place oldest = *std::ranges::min_element(
        places, {}, [this](const Place& place) { return queues_[place].front().number; });
    auto& queue = queues_[random == nullptr ? oldest : places[(*random)() % places.size()]];
    auto piece = std::move(queue.front());
    queue.pop_front();
    const bool fails = !fails_.empty() && piece.name == fails_;
    piece.done(fails ? "the device caught fire" : "");
  }

  /// Pieces that were on a lane at once.
  std::size_t most(int rank, Lane lane = Lane::kCompute) const { return most_.at({rank, lane}); }
  /// What was on both lanes whenever a piece was added: "a;b;\n".
  const std::string& together(int rank) const { return together_.at(rank); }
  void CountOnHost() { ++num_on_host_; }
  int num_on_host() const { return num_on_host_; }  ///< buffers that went to host memory
  void FailAt(std::string name) { fails_ = std::move(name); }

 private:
  struct Piece {
    std::string name;
    std::function<void(const std::string&)> done;
    std::int64_t number = 0;
  };
  using Place = std::pair<int, Lane>;  ///< rank
  std::map<Place, std::deque<Piece>> queues_;
  std::int64_t next_number_ = 0;
  std::map<Place, std::size_t> most_;
  std::map<int, std::string> together_;
  std::string fails_;
  int num_on_host_ = 0;
};

/// Memory of a device is the host's, under another name.
class HandQueue : public WorkQueue {
 public:
  HandQueue(std::shared_ptr<HandWork> work, int rank) : work_(std::move(work)), rank_(rank) {}

  Buffer Allocate(Shape shape, DType dtype) override {
    return OnDevice(Buffer::Allocate(std::move(shape), dtype), rank_);
  }
  Buffer Here(const Buffer& rows) override {
    if (!rows.defined() || (rows.device() == rank_ && rows.parts().empty())) return rows;
    Buffer whole = Allocate(rows.shape(), rows.dtype());
    std::byte* to = whole.data();
    const auto append = [&to](const Buffer& part) {
      if (part.num_bytes() > 0) std::memcpy(to, part.data(), part.num_bytes());
      to += part.num_bytes();
    };
    if (rows.parts().empty()) append(rows);
    for (const Buffer& part : rows.parts()) append(part);
    return whole;
  }
  Buffer OnHost(const Buffer& rows) override {
    if (!rows.defined() || rows.on_host()) return rows;
    work_->CountOnHost();
    const Buffer here = Here(rows);
    Buffer copy = Buffer::Allocate(here.shape(), here.dtype());
    if (here.num_bytes() > 0) std::memcpy(copy.data(), here.data(), here.num_bytes());
    return copy;
  }
  void BindThread() override {}
  void Begin(const std::string& name, Lane lane) override {
    name_ = name;
    lane_ = lane;
    queued_ns_[lane].push_back(NowNs());
  }
  void End(std::function<void(const std::string&)> done) override {
    if (done) {
      work_->Add(rank_, lane_, name_, std::move(done));
    } else {
      queued_ns_[lane_].pop_back();
    }
  }
  /// Of the piece that was queued first of those whose times have not been taken: it begins when
  /// it is queued and the one before it has ended.
  WorkTimes TakeTimes(Lane lane) override {
    std::int64_t begin_ns = std::exchange(ended_ns_, NowNs());
    if (auto& queued = queued_ns_[lane]; !queued.empty()) {
      begin_ns = std::max(begin_ns, queued.front());
      queued.pop_front();
    }
    return {begin_ns, ended_ns_, {}};
  }
  void Synchronize() override {}

  static Buffer OnDevice(const Buffer& buffer, int device) {
    if (!buffer.defined()) return buffer;
    return Buffer::Wrap(buffer.owner(), buffer.data(), buffer.shape(), buffer.dtype(), device);
  }

 private:
  std::shared_ptr<HandWork> work_;
  int rank_;
  std::string name_;
  std::map<Lane, std::deque<std::int64_t>> queued_ns_;
  Lane lane_ = Lane::kCompute;
  std::int64_t ended_ns_ = NowNs();
};

/// A queue whose work runs on a thread, a little later.
class RunningQueue final : public HandQueue {
 public:
  explicit RunningQueue(int rank)
      : HandQueue(nullptr, rank), thread_([this](const std::stop_token& stop) { Run(stop); }) {}
  ~RunningQueue() override {
    {
      const std::lock_guard lock(mutex_);  // not between its look at the token and its sleep
      thread_.request_stop();
    }
    more_.notify_one();
  }
  void End(std::function<void(const std::string&)> done) override {
    if (!done) return;
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(done));
    more_.notify_one();
  }

 private:
  void Run(const std::stop_token& stop) {
    for (;;) {
      std::function<void(const std::string&)> done;
      {
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return stop.stop_requested() || !pieces_.empty(); });
        if (pieces_.empty()) return;
        done = std::move(pieces_.front());
        pieces_.pop_front();
      }
      std::this_thread::yield();
      done("");
    }
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void(const std::string&)>> pieces_;
  std::jthread thread_;  ///< last: it uses the others
};

/// Insists on inputs in its device's memory, in one piece, and leaves its outputs there. What the
/// inner program makes of them is reported by `finish` alone, once the work has run.
class QueuedProgram : public WrappedProgram {
 public:
  QueuedProgram(std::unique_ptr<StageProgram> inner, int rank)
      : WrappedProgram(std::move(inner)), rank_(rank) {}

  ForwardResult Forward(const ForwardPass& pass) override {
    Check(pass.inputs);
    ForwardResult result = program->Forward(pass);
    for (Buffer& output : result.outputs) output = HandQueue::OnDevice(output, rank_);
    result.finish = [loss = std::exchange(result.loss, {}),
                     inner = std::move(result.finish)](ForwardResult& done) {
      done.loss = loss;
      if (inner) inner(done);
    };
    return result;
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    Check(pass.gradients);
    BackwardResult result = program->Backward(pass);
    for (Buffer& gradient : result.gradients) gradient = HandQueue::OnDevice(gradient, rank_);
    return result;
  }
  ReducedGradients ReduceGradients() override {
    const ReducedGradients inner = program->ReduceGradients();
    return {0.0, {}, [inner](ReducedGradients& done) {
              done = inner;
              if (inner.finish) inner.finish(done);
            }};
  }

 private:
  void Check(const std::vector<Buffer>& buffers) const {
    for (const Buffer& buffer : buffers) {
      if (!buffer.defined() || (buffer.device() == rank_ && buffer.parts().empty())) continue;
      throw std::logic_error("expected rows in one piece on device " + std::to_string(rank_) +
                             ", got " + std::to_string(buffer.parts().size()) +
                             " parts on device " + std::to_string(buffer.device()));
    }
  }

  int rank_;
};

/// Programs of `make` on devices that run queues.
inline ProgramFactory OnQueues(ProgramFactory make) {
  return [make = std::move(make)](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
    return std::make_unique<QueuedProgram>(make(shard), shard.rank);
  };
}

}  // namespace troupe
