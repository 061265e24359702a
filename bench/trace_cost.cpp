// Measures the cost of traces: per record against a plain copy of as many bytes, and per step with
// traces on and off in turn. bench/README.md explains the columns.
#include <cstring>
#include <thread>

#include "bench/report.hpp"
#include "bench/synthetic_job.hpp"
#include "trace/clock.hpp"
#include "trace/recorder.hpp"

namespace troupe::bench {
namespace {

constexpr int kRecords = 400'000;
constexpr int kRepeats = 9;
constexpr std::size_t kCapacity = 1 << 17;

/// ns per record of `write(i)`, on `threads` threads at once.
template <class Write>
double NsPerRecord(int threads, Write write) {
  std::vector<std::thread> writers;
  const std::int64_t begin = NowNs();
  for (int t = 0; t < threads; ++t) {
    writers.emplace_back([&write] {
      for (int i = 0; i < kRecords; ++i) write(i);
    });
  }
  for (auto& writer : writers) writer.join();
  return static_cast<double>(NowNs() - begin) / (static_cast<double>(kRecords) * threads);
}

void MeasureRecords(Report& report, int threads) {
  RecorderOptions options;
  options.capacity = kCapacity;
  Recorder recorder(options);
  std::vector<TraceRecord> plain(kCapacity);
  std::vector<double> noted;
  std::vector<double> copied;
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    // The calls of one message: sent, begun, ended, each with a clock reading.
    const double note_ns = NsPerRecord(threads, [&](int i) {
      TraceRecord record;
      record.unit = i;
      record.sent_ns = NowNs();
      const std::uint64_t number = recorder.Note(record);
      recorder.Begin(number, NowNs());
      recorder.End(number, NowNs(), 0, 1);
    });
    const double copy_ns = NsPerRecord(threads, [&](int i) {
      TraceRecord record;
      record.unit = i;
      record.sent_ns = NowNs();
      record.begin_ns = NowNs();
      record.end_ns = NowNs();
      std::memcpy(&plain[static_cast<std::size_t>(i) % kCapacity], &record, sizeof(record));
    });
    if (repeat == 0) continue;  // first access to the pages
    noted.push_back(note_ns);
    copied.push_back(copy_ns);
  }
  if (recorder.noted() !=
      static_cast<std::uint64_t>(kRecords) * (kRepeats + 1) * static_cast<std::uint64_t>(threads)) {
    report.AddFault("records are missing");
  }
  const double note_ns = Summarize(noted).median;
  const double copy_ns = Summarize(copied).median;
  report.AddRow({"record, " + std::to_string(threads) + " thread" + (threads > 1 ? "s" : ""),
                 Fixed(note_ns, 1) + " ns", Fixed(copy_ns, 1) + " ns", Fixed(note_ns / copy_ns, 3),
                 Fixed(1e3 / note_ns, 1) + " M/s"},
                {{"threads", threads}, {"note_ns", noted}, {"copy_ns", copied}});
}

double StepOf(const SyntheticGraph& graph, double forward_ms, bool trace) {
  Config config = ConfigOf(graph, forward_ms, 2 * forward_ms);
  config.trace.messages = trace;
  std::vector<double> seconds;
  for (const TimedRound& round : RunRounds(config, 7, 16)) seconds.push_back(round.seconds);
  return Summarize(seconds).median;
}

void MeasureSteps(Report& report, const SyntheticGraph& graph, double forward_ms) {
  std::vector<double> on;
  std::vector<double> off;
  std::vector<double> ratios;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    // On, off, off, on: a slowdown of the machine affects both.
    const bool first = repeat % 2 == 0;
    const double a = StepOf(graph, forward_ms, first);
    const double b = StepOf(graph, forward_ms, !first);
    on.push_back(first ? a : b);
    off.push_back(first ? b : a);
    ratios.push_back(on.back() / off.back());
  }
  const Summary ratio = Summarize(ratios);
  report.AddRow(
      {graph.name + ", " + Fixed(forward_ms, 1) + " ms",
       Fixed(Summarize(on).median * 1e3, 3) + " ms", Fixed(Summarize(off).median * 1e3, 3) + " ms",
       Fixed(ratio.median, 4), Fixed(ratio.min, 4) + " to " + Fixed(ratio.max, 4)},
      {{"graph", graph.name}, {"forward_ms", forward_ms}, {"on_s", on}, {"off_s", off}});
}

int Main(int argc, char** argv) {
  Report report(argc, argv, "trace_cost",
                {"case                ", "traced    ", "not traced", "ratio", "spread or rate"});
  MeasureRecords(report, 1);
  MeasureRecords(report, 2);
  const SyntheticGraph chain{"chain of 8", {{"language", 8}}, {}};
  const SyntheticGraph edge{
      "pp2 > pp6", {{"vision", 2}, {"language", 6}}, {{"vision", "language"}}};
  for (const double forward_ms : {0.0, 1.0, 5.0}) {
    MeasureSteps(report, chain, forward_ms);
    MeasureSteps(report, edge, forward_ms);
  }
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
