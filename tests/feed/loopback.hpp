// A port and machines on the loopback interface, with samples that follow from their tickets.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "feed/machine.hpp"
#include "feed/port.hpp"

namespace troupe {

/// Byte i of row r.
inline std::byte ByteOf(std::int64_t row, std::size_t i) {
  return static_cast<std::byte>((static_cast<std::size_t>(row) * 31 + i * 7 + i / 1000) & 0xFF);
}

inline bool IsSampleOf(const SampleTicket& ticket, const Buffer& sample) {
  if (static_cast<std::int64_t>(sample.num_bytes()) != ticket.bytes) return false;
  for (std::size_t i = 0; i < sample.num_bytes(); ++i) {
    if (sample.data()[i] != ByteOf(ticket.row, i)) return false;
  }
  return true;
}

/// Negative rows cannot be read.
class PatternSource : public InputSource {
 public:
  std::shared_ptr<const Inputs> Assemble(const FeedUnit&, const std::vector<Buffer>&) override {
    throw std::logic_error("a machine assembles nothing");
  }
  RoundCounts Count(const Round&) override { return {}; }
  std::unique_ptr<SampleWork> Begin(const SampleTicket& ticket) const override {
    struct Work : SampleWork {
      explicit Work(const SampleTicket& of) : ticket(of) {}
      void Read() override {
        if (ticket.row < 0)
          throw std::runtime_error("row " + std::to_string(ticket.row) + " is bad");
      }
      void Tokenize() override {}
      Buffer Decode() override {
        Buffer sample = Buffer::AllocateBytes(static_cast<std::size_t>(ticket.bytes));
        for (std::size_t i = 0; i < sample.num_bytes(); ++i) {
          sample.data()[i] = ByteOf(ticket.row, i);
        }
        return sample;
      }
      SampleTicket ticket;
    };
    return std::make_unique<Work>(ticket);
  }
};

/// Lines that threads print.
class Lines {
 public:
  std::function<void(const std::string&)> printer() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      all_ += line + "\n";
    };
  }
  std::string all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  /// Waits for a line with `words`, at most 10 s.
  void Await(const std::string& words) {
    for (int i = 0; i < 1000 && all().find(words) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    CHECK_THAT(all(), Catch::Contains(words));
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    all_.clear();
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

/// What a process hears of its machines.
class Taker {
 public:
  struct Sample {
    SampleTicket ticket;
    MachineSample prepared;
  };

  void ListenAt(FeedPort& port) {
    port.Listen([this](std::shared_ptr<FeedMachine> machine) {
      const std::lock_guard lock(mutex_);
      machines_.push_back(std::move(machine));
      news_.notify_all();
    });
  }
  /// Waits for machine i.
  std::shared_ptr<FeedMachine> Await(std::size_t i) {
    std::unique_lock lock(mutex_);
    Wait(lock, [&] { return machines_.size() > i; });
    return machines_[i];
  }
  /// Watches machine i.
  std::shared_ptr<FeedMachine> Use(std::size_t i) {
    const auto machine = Await(i);
    machine->Watch([this] {
      const std::lock_guard lock(mutex_);
      ++num_gone_;
      news_.notify_all();
    });
    return machine;
  }
  void Ask(std::size_t i, const SampleTicket& ticket, std::int64_t microbatch = 0) {
    Await(i)->Ask(microbatch, ticket, [this, ticket](const MachineSample& sample) {
      const std::lock_guard lock(mutex_);
      samples_.push_back({ticket, sample});
      news_.notify_all();
    });
  }
  std::vector<Sample> AwaitSamples(std::size_t count) {
    std::unique_lock lock(mutex_);
    Wait(lock, [&] { return samples_.size() >= count; });
    return samples_;
  }
  void AwaitGone(int count) {
    std::unique_lock lock(mutex_);
    Wait(lock, [&] { return num_gone_ >= count; });
  }

 private:
  void Wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& until) {
    if (!news_.wait_for(lock, std::chrono::seconds(20), until)) throw std::runtime_error("no news");
  }

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::shared_ptr<FeedMachine>> machines_;
  std::vector<Sample> samples_;
  int num_gone_ = 0;
};

inline const RunKey& TestKey() {
  static const RunKey key = RunKey::Generate();
  return key;
}

inline FeedPortOptions PortOptions(Lines& lines, bool leads = true) {
  return {.key = TestKey().Feed(),
          .leads = leads,
          .build = "build 1",
          .facts = "data.seed = 1\n",
          .print = lines.printer()};
}

inline Socket LoopbackListener() { return Socket::Listen({"127.0.0.1", 0}); }

inline FeedMachineOptions MachineOptions(const Address& at, const std::string& name, Lines& lines) {
  FeedMachineOptions options{TestKey().Feed(), at};
  options.hello = {.name = name, .build = "build 1", .facts = "data.seed = 1\n", .pid = 7};
  options.threads = 2;
  options.patience = std::chrono::seconds(20);
  options.print = lines.printer();
  return options;
}

inline std::future<JoinProblem> StartMachine(FeedMachineOptions options) {
  return std::async(std::launch::async, [options = std::move(options)] {
    static const PatternSource source;
    return RunFeedMachine(options, source);
  });
}

/// The port of process 0, and what that hears of its machines.
class PortFixture {
 public:
  PortFixture() { taker.ListenAt(port); }

  Lines lines;
  Taker taker;
  FeedPort port{LoopbackListener(), PortOptions(lines)};  ///< last: its thread uses the others
};

}  // namespace troupe
