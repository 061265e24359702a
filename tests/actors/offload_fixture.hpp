// Synthetic programs whose state can be away: they tell what they do and when, and refuse every
// pass while it is.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "modules/wrapped_program.hpp"
#include "tests/actors/threaded_job.hpp"

namespace troupe {

/// What happened, in one order over all ranks.
class OffloadLog {
 public:
  struct Event {
    std::string what;  ///< "F", "B", "offload", "away", "restore", "here"
    std::string module;
    int pp = 0;
    int rank = 0;
    std::int64_t unit = 0;  ///< of passes
    bool moments = false;   ///< of a restore
  };

  void Add(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  /// Of a job that is over.
  const std::vector<Event>& events() const { return events_; }
  std::vector<Event> Of(const std::string& module, int rank) const {
    std::vector<Event> own;
    for (const Event& event : events_) {
      if (event.module == module && event.rank == rank) own.push_back(event);
    }
    return own;
  }
  /// "F0 offload away restore here B0 ..." of one rank of a module.
  std::string Story(const std::string& module, int rank) const {
    std::string text;
    for (const Event& event : Of(module, rank)) {
      const bool pass = event.what == "F" || event.what == "B";
      text += (text.empty() ? "" : " ") + event.what + (pass ? std::to_string(event.unit) : "");
      if (event.moments) text += "+";
    }
    return text;
  }
  std::int64_t Count(const std::string& what, const std::string& module, int pp) const {
    return std::ranges::count_if(events_, [&](const Event& event) {
      return event.what == what && event.module == module && event.pp == pp;
    });
  }

 private:
  std::mutex mutex_;
  std::vector<Event> events_;
};

/// What one shard's moves are to do instead.
struct MoveFault {
  std::string module;
  int rank = 0;
  bool restore = false;
  bool throws = false;  ///< else its copies fail
};

/// Copies that take a random while, on a thread of their own.
class OffloadingProgram : public WrappedProgram {
 public:
  OffloadingProgram(std::unique_ptr<StageProgram> inner, ShardAddress shard,
                    std::shared_ptr<OffloadLog> log, MoveFault fault, int most_us)
      : WrappedProgram(std::move(inner)),
        shard_(std::move(shard)),
        log_(std::move(log)),
        fault_(std::move(fault)),
        most_us_(most_us),
        random_(static_cast<unsigned>(shard_.rank) + 17) {}

  ForwardResult Forward(const ForwardPass& pass) override {
    Require("forward");
    Tell("F", pass.unit);
    return program->Forward(pass);
  }
  BackwardResult Backward(const BackwardPass& pass) override {
    Require("backward");
    BackwardResult result = program->Backward(pass);
    Tell("B", pass.unit);
    return result;
  }
  ReducedGradients ReduceGradients() override {
    Require("gradient reduction");
    return program->ReduceGradients();
  }
  void Offload(StateMovedCallback done) override {
    Require("offload");
    Tell("offload");
    Move(false, std::move(done));
  }
  void Restore(bool moments, StateMovedCallback done) override {
    if (here_) throw std::logic_error("restored twice");
    log_->Add({"restore", shard_.module, shard_.pp, shard_.rank, 0, moments});
    Move(true, std::move(done));
  }

 private:
  void Tell(const std::string& what, std::int64_t unit = 0) {
    log_->Add({what, shard_.module, shard_.pp, shard_.rank, unit, false});
  }
  void Require(const char* what) const {
    if (!here_) throw std::logic_error(std::string(what) + " while the state is away");
  }
  void Move(bool restore, StateMovedCallback done) {
    const bool faulty =
        fault_.module == shard_.module && fault_.rank == shard_.rank && fault_.restore == restore;
    if (faulty && fault_.throws) throw std::runtime_error("no room\nsecond line");
    here_ = false;
    const int us = static_cast<int>(random_() % static_cast<unsigned>(most_us_ + 1));
    copy_ = std::jthread([this, restore, faulty, us, done = std::move(done)] {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
      if (faulty) return done({1, 2, "the copy broke"});
      here_ = restore;
      Tell(restore ? "here" : "away");
      done({NowNs() - us, NowNs(), ""});
    });
  }

  ShardAddress shard_;
  std::shared_ptr<OffloadLog> log_;
  MoveFault fault_;
  int most_us_;
  std::mt19937 random_;
  std::atomic<bool> here_ = true;
  std::jthread copy_;  ///< joined before the next one begins
};

/// Puts them around all programs.
inline std::function<ProgramFactory(ProgramFactory)> Offloading(std::shared_ptr<OffloadLog> log,
                                                                MoveFault fault = {},
                                                                int most_us = 300) {
  return [=](ProgramFactory make) -> ProgramFactory {
    return [=](const ShardAddress& shard) -> std::unique_ptr<StageProgram> {
      return std::make_unique<OffloadingProgram>(make(shard), shard, log, fault, most_us);
    };
  };
}

/// Encoder "vision" and "language" on the same ranks; `vision` offloads all it has.
inline Config OffloadingConfig(Layout vision, Layout language) {
  Config config =
      SyntheticConfigOf({{"vision", vision}, {"language", language}}, {{"vision", "language"}});
  config.modules[1].ranks = config.modules[0].ranks;
  config.cluster.ranks = vision.num_ranks();
  config.modules[0].offload = Offload::kState;
  return config;
}

}  // namespace troupe
