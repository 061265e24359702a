// Measures the cost of a pass without computation. bench/README.md explains the columns.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sys/resource.h>
#include <thread>

#include "bench/report.hpp"
#include "bench/synthetic_job.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t kMicrobatches = 1000;
constexpr int kRounds = 7;

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Seconds for a thread to wake another and be woken by it: the bare cost of two hand-overs between
/// threads.
double ThereAndBack(int times) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  const auto serve = [&](int me) {
    for (int i = 0; i < times; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn == me; });
      turn = 1 - me;
      changed.notify_one();
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  std::thread other(serve, 1);
  serve(0);
  other.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
}

void Measure(Report& report, int stages) {
  const SyntheticGraph graph{"chain", {{"language", stages}}, {}};
  const Config config = ConfigOf(graph, 0.0, 0.0);
  const double cpu_begin = CpuSeconds();
  const auto rounds = RunRounds(config, kRounds, kMicrobatches);
  const double passes = static_cast<double>(stages) * 2.0 * static_cast<double>(kMicrobatches);
  const double cpu = (CpuSeconds() - cpu_begin) / (passes * (kRounds + 1));
  std::vector<double> costs;
  std::vector<double> hand_overs;
  for (const TimedRound& round : rounds) {
    costs.push_back(round.seconds / passes);
    hand_overs.push_back(ThereAndBack(2000));
    std::size_t ran = 0;
    for (const auto& stage : round.stages) ran += stage.size();
    if (static_cast<double>(ran) != passes) {
      report.AddFault(std::to_string(ran) + " passes ran, expected " + Fixed(passes, 0));
    }
  }
  const Summary cost = Summarize(costs);
  const double hand_over = Summarize(hand_overs).median;
  report.AddRow({std::to_string(stages), Fixed(cost.median * 1e6, 2), Fixed(cost.mad * 1e6, 2),
                 Fixed(cost.min * 1e6, 2), Fixed(cost.max * 1e6, 2), Fixed(cpu * 1e6, 2),
                 Fixed(hand_over * 1e6, 2), Fixed(cost.median / hand_over, 2)},
                {{"stages", stages},
                 {"pass_s", costs},
                 {"cpu_s_per_pass", cpu},
                 {"thread_round_trip_s", hand_overs}});
}

int Main(int argc, char** argv) {
  Report report(
      argc, argv, "actor_cost",
      {"stages", "pass_us", "mad_us", "min_us", "max_us", "cpu_us", "round_trip", "ratio"});
  for (const int stages : {1, 2, 8}) Measure(report, stages);
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
