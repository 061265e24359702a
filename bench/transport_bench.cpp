// Compares the collectives of one process with memcpy in the same run.
//
// `bytes` is the size of one member's output; in a reduce-scatter, of its input. Every sample runs
// the operation, then memcpy of `bytes` on as many threads at once, so that both run under the same
// conditions. Columns:
//   time      one operation, until the last member is done (wall clock)
//   memcpy_us the same for memcpy, without synchronisation of the threads
//   ratio     time / memcpy, of the medians over all samples
//   GB/s      bytes / time, per member
// Each case checks its answer before the timing and reports a wrong one as an error.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "trace/analyze/median.hpp"
#include "transport/communicator.hpp"

namespace {

using namespace troupe;
using Clock = std::chrono::steady_clock;

// Samples per case. A sample repeats short operations and reports the time of one, so the library
// cannot choose the number.
constexpr int kSamples = 15;

/// Threads that run the same work concurrently, any number of times.
class Crew {
 public:
  explicit Crew(int size) : start_(size + 1), end_(size + 1), times_(size) {
    for (int member = 0; member < size; ++member)
      threads_.emplace_back([this, member] { Serve(member); });
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    work_ = nullptr;
    start_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Seconds per run from the first start to the last end, over `repeats` runs of work(member).
  double Run(int repeats, const std::function<void(int)>& work) {
    repeats_ = repeats;
    work_ = &work;
    start_.arrive_and_wait();
    end_.arrive_and_wait();
    Clock::time_point first = times_[0].begin;
    Clock::time_point last = times_[0].end;
    for (const Times& times : times_) {
      first = std::min(first, times.begin);
      last = std::max(last, times.end);
    }
    return std::chrono::duration<double>(last - first).count() / repeats;
  }

 private:
  struct Times {
    Clock::time_point begin;
    Clock::time_point end;
  };

  void Serve(int member) {
    for (;;) {
      start_.arrive_and_wait();
      if (work_ == nullptr) return;
      Times& times = times_[static_cast<std::size_t>(member)];
      times.begin = Clock::now();
      for (int i = 0; i < repeats_; ++i) (*work_)(member);
      times.end = Clock::now();
      end_.arrive_and_wait();
    }
  }

  std::barrier<> start_;
  std::barrier<> end_;
  std::vector<Times> times_;
  const std::function<void(int)>* work_ = nullptr;
  int repeats_ = 0;
  std::vector<std::thread> threads_;  // last: they use the rest
};

/// Memory of all members; the input of member m is m + 1 everywhere.
struct Memory {
  Memory(int members, std::int64_t num_bytes) {
    for (int member = 0; member < members; ++member) {
      const Shape shape = {num_bytes / 4};
      inputs.push_back(Buffer::Allocate(shape, DType::kFloat32));
      outputs.push_back(Buffer::Zeros(shape, DType::kFloat32));
      std::fill_n(inputs.back().as<float>(), num_bytes / 4, static_cast<float>(member + 1));
    }
  }
  float* input(int member) { return inputs[static_cast<std::size_t>(member)].as<float>(); }
  float* output(int member) { return outputs[static_cast<std::size_t>(member)].as<float>(); }

  std::vector<Buffer> inputs;
  std::vector<Buffer> outputs;
};

/// Times `work` of all members against memcpy of `num_bytes` by all members.
void Compare(benchmark::State& state, int members, std::int64_t num_bytes, Memory& memory,
             const std::function<void(int)>& work) {
  Crew crew(members);
  const std::function<void(int)> copy = [&](int member) {
    std::memcpy(memory.output(member), memory.input(member), static_cast<std::size_t>(num_bytes));
    benchmark::ClobberMemory();
  };
  const int repeats = static_cast<int>(std::clamp<std::int64_t>((8 << 20) / num_bytes, 1, 200));
  crew.Run(repeats, work);
  crew.Run(repeats, copy);
  std::vector<double> times;
  std::vector<double> copy_times;
  for (auto _ : state) {
    times.push_back(crew.Run(repeats, work));
    copy_times.push_back(crew.Run(repeats, copy));
    state.SetIterationTime(times.back());
  }
  const double time = Median(times);
  const double copy_time = Median(copy_times);
  state.counters["memcpy_us"] = copy_time * 1e6;
  state.counters["ratio"] = time / copy_time;
  state.counters["GB/s"] = static_cast<double>(num_bytes) / time * 1e-9;
}

/// Runs `work` once on all members, then applies `correct` to every member and element.
bool Check(int members, std::int64_t count, const std::function<void(int)>& work,
           const std::function<bool(int, std::int64_t)>& correct) {
  Crew(members).Run(1, work);
  for (int member = 0; member < members; ++member)
    for (std::int64_t i = 0; i < count; ++i)
      if (!correct(member, i)) return false;
  return true;
}

void BenchAllReduce(benchmark::State& state) {
  const int members = static_cast<int>(state.range(0));
  const std::int64_t count = state.range(1) / 4;
  Memory memory(members, state.range(1));
  const auto group = MakeLocalGroup(members, nullptr);
  const std::function<void(int)> work = [&](int member) {
    group[static_cast<std::size_t>(member)]->AllReduce(memory.output(member), count,
                                                       DType::kFloat32, ReduceOp::kSum);
  };
  for (int member = 0; member < members; ++member)
    std::copy_n(memory.input(member), count, memory.output(member));
  const float sum = static_cast<float>(members * (members + 1) / 2);
  if (!Check(members, count, work,
             [&](int m, std::int64_t i) { return memory.output(m)[i] == sum; }))
    return state.SkipWithError("wrong sum");
  // Zeros, so that repeated sums stay finite; memcpy then works on other memory of the same size.
  Memory target(members, state.range(1));
  const std::function<void(int)> timed = [&](int member) {
    group[static_cast<std::size_t>(member)]->AllReduce(target.output(member), count,
                                                       DType::kFloat32, ReduceOp::kSum);
  };
  Compare(state, members, state.range(1), memory, timed);
}

void BenchReduceScatter(benchmark::State& state) {
  const int members = static_cast<int>(state.range(0));
  const std::int64_t count = state.range(1) / 4 / members;
  Memory memory(members, state.range(1));
  const auto group = MakeLocalGroup(members, nullptr);
  const std::function<void(int)> work = [&](int member) {
    group[static_cast<std::size_t>(member)]->ReduceScatter(
        memory.input(member), count, DType::kFloat32, ReduceOp::kSum, memory.output(member));
  };
  const float sum = static_cast<float>(members * (members + 1) / 2);
  if (!Check(members, count, work,
             [&](int m, std::int64_t i) { return memory.output(m)[i] == sum; }))
    return state.SkipWithError("wrong sum");
  Compare(state, members, state.range(1), memory, work);
}

void BenchAllGather(benchmark::State& state) {
  const int members = static_cast<int>(state.range(0));
  const std::int64_t count = state.range(1) / 4 / members;
  Memory memory(members, state.range(1));
  const auto group = MakeLocalGroup(members, nullptr);
  const std::function<void(int)> work = [&](int member) {
    group[static_cast<std::size_t>(member)]->AllGather(
        memory.input(member), static_cast<std::size_t>(count) * 4, memory.output(member));
  };
  if (!Check(members, count * members, work, [&](int m, std::int64_t i) {
        return memory.output(m)[i] == static_cast<float>(i / count + 1);
      }))
    return state.SkipWithError("wrong order");
  Compare(state, members, state.range(1), memory, work);
}

void BenchAllToAll(benchmark::State& state) {
  const int members = static_cast<int>(state.range(0));
  const std::int64_t count = state.range(1) / 4 / members;
  Memory memory(members, state.range(1));
  const auto group = MakeLocalGroup(members, nullptr);
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(members),
                                       static_cast<std::size_t>(count) * 4);
  const std::function<void(int)> work = [&](int member) {
    group[static_cast<std::size_t>(member)]->AllToAll(memory.input(member), sizes,
                                                      memory.output(member), sizes);
  };
  if (!Check(members, count * members, work, [&](int m, std::int64_t i) {
        return memory.output(m)[i] == static_cast<float>(i / count + 1);
      }))
    return state.SkipWithError("wrong pieces");
  Compare(state, members, state.range(1), memory, work);
}

void BenchBarrier(benchmark::State& state) {
  const int members = static_cast<int>(state.range(0));
  const auto group = MakeLocalGroup(members, nullptr);
  Crew crew(members);
  const std::function<void(int)> work = [&](int member) {
    group[static_cast<std::size_t>(member)]->Barrier();
  };
  for (auto _ : state) state.SetIterationTime(crew.Run(200, work));
}

void Sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"members", "bytes"})
      ->ArgsProduct(
          {{2, 4, 8}, {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20}})
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(kSamples);
}

BENCHMARK(BenchBarrier)
    ->ArgName("members")
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->Arg(8)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(kSamples);
BENCHMARK(BenchAllReduce)->Apply(Sizes);
BENCHMARK(BenchReduceScatter)->Apply(Sizes);
BENCHMARK(BenchAllGather)->Apply(Sizes);
BENCHMARK(BenchAllToAll)->Apply(Sizes);

}  // namespace
