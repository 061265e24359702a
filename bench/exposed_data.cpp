// Runs a configuration's data through a job whose modules take stated times instead of computing, and
// says for how long they waited for data:
//
//   bench_exposed_data CONFIG RUN_KEY STEPS FORWARD_MS
//
// So the cores of this machine are those of the workers and of the feed machines. bench/feed_machines.py calls it.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "app/feed.hpp"
#include "app/run_job.hpp"
#include "bench/program.hpp"
#include "configs/loader.hpp"
#include "data/row_source.hpp"
#include "kinds/synthetic.hpp"
#include "layout/text.hpp"
#include "modules/synthetic/synthetic_program.hpp"

namespace troupe::bench {
namespace {

/// Prepares and assembles real samples, and gives the modules those that they understand.
class RealData : public InputSource {
 public:
  RealData(const Config& real, const Config& stated) : rows_(real), stated_(stated) {}
  bool prepares() const override { return true; }
  std::vector<SampleTicket> TicketsOf(const FeedUnit& unit) override {
    return rows_.TicketsOf(unit);
  }
  std::unique_ptr<SampleWork> Begin(const SampleTicket& ticket) const override {
    return rows_.Begin(ticket);
  }
  bool MayUse(const SampleTicket& ticket, const Buffer& sample) const override {
    return rows_.MayUse(ticket, sample);
  }
  std::shared_ptr<const Inputs> Assemble(const FeedUnit& unit,
                                         const std::vector<Buffer>& samples) override {
    static_cast<void>(rows_.Assemble(unit, samples));
    return stated_.Assemble(unit, {});
  }
  RoundCounts Count(const Round& round) override { return stated_.Count(round); }
  const RowSource& rows() const { return rows_; }

 private:
  RowSource rows_;
  SyntheticSource stated_;
};

Config WithStatedTimes(Config config, double forward_ms) {
  for (ModuleConfig& module : config.modules) {
    SyntheticConfig times;
    times.forward_ms = forward_ms;
    times.backward_ms = 2 * forward_ms;
    module.model = times;
    module.weights.reset();
  }
  for (EdgeConfig& edge : config.edges) edge.through.reset();
  config.optimizer.clip_norm = 0;
  return config;
}

/// Skips the first two steps: they have nothing prepared, and machines may come meanwhile.
struct WaitPrinter : JobObserver {
  explicit WaitPrinter(const DataConfig& config) : data(config) {}

  void OnRound(const RoundResult& result) override {
    const std::vector<std::string> sources = data.train_paths();
    const DataDelay& delay = result.data.delay;
    std::printf("step %lld: %.3f s, waited for data %.4f s%s\n",
                static_cast<long long>(result.round.step + 1), result.seconds,
                static_cast<double>(result.data.ns) * 1e-9,
                delay.ns == 0 ? ""
                              : (std::string(" (") + ToString(delay.phase) + " " +
                                 sources.at(static_cast<std::size_t>(delay.source)) + " on " +
                                 delay.process + ")")
                                    .c_str());
    std::fflush(stdout);
    if (result.round.step < 2) return;
    seconds += result.seconds;
    waited += static_cast<double>(result.data.ns) * 1e-9;
  }

  const DataConfig& data;
  double seconds = 0;
  double waited = 0;
};

int Main(const std::string& path, const std::string& key, std::int64_t steps, double forward_ms) {
  const Config real = LoadConfig(path).config;
  const Config stated = WithStatedTimes(real, forward_ms);
  const auto source = std::make_shared<RealData>(real, stated);
  FeedEntrance feed(real, source->rows(), RunKey::ReadFile(key), "");
  const auto printer = std::make_shared<WaitPrinter>(real.data);
  JobSetup setup;
  setup.plan = std::make_shared<const JobPlan>(stated);
  setup.source = source;
  setup.observer = printer;
  setup.feed = &feed.port();
  setup.rounds = [steps, &stated](std::int64_t number) -> std::optional<Round> {
    if (number == steps) return std::nullopt;
    return Round{.number = number,
                 .step = number,
                 .microbatches = stated.schedule.microbatches,
                 .place = number * stated.global_batch(),
                 .group = stated.global_batch()};
  };
  const Failure failure = RunInProcess(setup);
  feed.End(failure);
  if (!failure.empty()) {
    std::fprintf(stderr, "%s\n", failure.text.c_str());
    return EXIT_FAILURE;
  }
  std::printf("waited for data %s of the time\n",
              (Fixed(100 * printer->waited / printer->seconds, 2) + "%").c_str());
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s CONFIG RUN_KEY STEPS FORWARD_MS\n", argv[0]);
    return EXIT_FAILURE;
  }
  return troupe::bench::ExitCodeOf("bench_exposed_data", [argv] {
    return troupe::bench::Main(argv[1], argv[2], std::atoll(argv[3]), std::atof(argv[4]));
  });
}
