// Measures a boundary inside one process: the real leaders, between a source and a sink that
// compute nothing. bench/README.md explains the columns.
#include <chrono>
#include <cstring>
#include <deque>
#include <numeric>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/boundary_leader.hpp"
#include "bench/report.hpp"
#include "messages/system.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSamplesPerMicrobatch = 16;  // dp 3 gets 5, 5 and 6 of them
constexpr int kCredits = 4;
constexpr int kSamples = 7;

/// The destination module's first stage: answers every activation with the same gradient, in which
/// each row holds the number of its sample.
struct SinkState {
  static constexpr const char* name = "sink";
  Buffer gradient;
};

/// Rows for the samples of `held`, one each, filled with the number of the sample.
Buffer Numbered(const std::vector<Interval>& held, std::int64_t width) {
  std::int64_t rows = 0;
  for (const Interval& interval : held) rows += interval.size();
  Buffer buffer = Buffer::Allocate({rows, width}, DType::kFloat32);
  float* out = buffer.as<float>();
  for (const Interval& interval : held) {
    for (auto sample = interval.begin; sample < interval.end; ++sample, out += width) {
      std::fill_n(out, width, static_cast<float>(sample));
    }
  }
  return buffer;
}

/// The first fault; empty: none. Checks both ends of every row.
std::string RowsFault(const Buffer& rows, const std::vector<Interval>& held) {
  std::int64_t row = 0;
  for (const Interval& interval : held) {
    for (auto sample = interval.begin; sample < interval.end; ++sample, ++row) {
      const std::int64_t width = rows.shape().back();
      const float* values = rows.as<float>() + row * width;
      if (row < rows.num_rows() && values[0] == static_cast<float>(sample) &&
          values[width - 1] == static_cast<float>(sample)) {
        continue;
      }
      return "row " + std::to_string(row) + " is not that of sample " + std::to_string(sample);
    }
  }
  return row == rows.num_rows() ? "" : "there are rows too many";
}

Downstream::behavior_type RunSink(ActorPointer<Downstream, SinkState> self,
                                  std::vector<Interval> held, std::int64_t width,
                                  std::shared_ptr<AbortSignal> abort) {
  self->state.gradient = Numbered(held, width);
  return {[self, held = std::move(held), abort](const Activation& activation) {
    const auto fault = RowsFault(activation.shards.front(), held);
    if (!fault.empty()) abort->Raise("activation: " + fault);
    return Gradient{activation.unit, {self->state.gradient}};
  }};
}

/// One edge of `from` source replicas and `to` destination replicas.
class Boundary {
 public:
  Boundary(int from, int to, std::int64_t num_bytes)
      : system_(config_),
        driver_(system_),
        width_(num_bytes / kSamplesPerMicrobatch / 4),
        source_(EvenAssignment(kSamplesPerMicrobatch, from)) {
    const Assignment destination = EvenAssignment(kSamplesPerMicrobatch, to);
    std::map<int, DestinationLeader> peers;
    for (int d = 0; d < to; ++d) {
      const auto sink = driver_->spawn(RunSink, destination[Index(d)], width_, abort_);
      peers[d] = Own(driver_->spawn(
          RunDestinationLeader,
          DestinationLeaderConfig{{"bench", d, source_, destination, Buffer::kHost, tensors_,
                                   abort_, std::vector<ProcessId>(source_.size())},
                                  0,
                                  Own(sink),
                                  {}}));
    }
    for (int s = 0; s < from; ++s) {
      leaders_.push_back(Own(driver_->spawn(
          RunSourceLeader,
          SourceLeaderConfig{{"bench", s, source_, destination, Buffer::kHost, tensors_, abort_,
                              std::vector<ProcessId>(destination.size())},
                             kCredits,
                             peers})));
      rows_.push_back(Numbered(source_[Index(s)], width_));
      tables_.push_back(TableOf(source_[Index(s)]));
    }
  }
  Boundary(const Boundary&) = delete;
  Boundary& operator=(const Boundary&) = delete;
  ~Boundary() {
    for (const auto& actor : owned_) driver_->send_exit(actor, caf::exit_reason::user_shutdown);
    for (const auto& actor : owned_) driver_->wait_for(actor);
  }

  /// Sends `count` microbatches there and back, at most kCredits at once. Returns seconds.
  double Run(std::int64_t count) {
    const auto begin = Clock::now();
    std::deque<std::function<void()>> open;
    for (std::int64_t i = 0; i < count; ++i) {
      if (open.size() == kCredits) {
        open.front()();
        open.pop_front();
      }
      open.push_back(SendOne(next_++));
    }
    for (const auto& await : open) await();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (abort_->raised()) throw std::runtime_error(abort_->cause());
    return seconds;
  }

 private:
  static std::size_t Index(int i) { return static_cast<std::size_t>(i); }

  static std::shared_ptr<const RowTable> TableOf(const std::vector<Interval>& held) {
    auto table = std::make_shared<RowTable>();
    for (const Interval& interval : held) {
      for (auto sample = interval.begin; sample < interval.end; ++sample) {
        table->samples.push_back(sample);
        table->rows.push_back(1);
      }
    }
    return table;
  }

  template <class Handle>
  Handle Own(const Handle& handle) {
    owned_.push_back(caf::actor_cast<caf::actor>(handle));
    return handle;
  }

  /// Sends one microbatch from every replica. The result waits for all its gradients.
  std::function<void()> SendOne(std::int64_t microbatch) {
    std::vector<std::function<void()>> answers;
    for (std::size_t s = 0; s < leaders_.size(); ++s) {
      auto answer =
          std::make_shared<decltype(driver_->request(leaders_[s], caf::infinite, Activation{}))>(
              driver_->request(leaders_[s], caf::infinite,
                               Activation{microbatch, 0, {rows_[s]}, tables_[s]}));
      answers.push_back([this, s, answer] {
        answer->receive(
            [&](const Gradient& gradient) {
              const auto fault = RowsFault(gradient.shards.front(), source_[s]);
              if (!fault.empty()) abort_->Raise("gradient: " + fault);
            },
            [&](const caf::error& reason) { abort_->Raise(FailureOf(reason)); });
      });
    }
    return [answers] {
      for (const auto& await : answers) await();
    };
  }

  std::shared_ptr<AbortSignal> abort_ = std::make_shared<AbortSignal>();
  std::shared_ptr<TensorStore> tensors_ = std::make_shared<TensorStore>(abort_);
  SystemConfig config_{tensors_, false};
  caf::actor_system system_;
  caf::scoped_actor driver_;
  std::int64_t width_;
  Assignment source_;
  std::vector<SourceLeader> leaders_;
  std::vector<Buffer> rows_;  ///< by source replica
  std::vector<std::shared_ptr<const RowTable>> tables_;
  std::vector<caf::actor> owned_;
  std::int64_t next_ = 0;
};

/// Seconds to copy `num_bytes` there and back, `count` times, between memory that is already in
/// use.
double CopySeconds(std::vector<char>& from, std::vector<char>& to, std::int64_t count) {
  const auto begin = Clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to.data(), from.data(), from.size());
    std::memcpy(from.data(), to.data(), from.size());
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string SizeName(std::int64_t num_bytes) {
  return num_bytes >= (1 << 20) ? std::to_string(num_bytes >> 20) + " MiB"
                                : std::to_string(num_bytes >> 10) + " KiB";
}

void Measure(Report& report, int from, int to, std::int64_t num_bytes) {
  Boundary boundary(from, to, num_bytes);
  const std::int64_t count =
      std::clamp<std::int64_t>((std::int64_t{128} << 20) / num_bytes, 8, 200);
  std::vector<char> here(static_cast<std::size_t>(num_bytes), 1);
  std::vector<char> there(static_cast<std::size_t>(num_bytes), 2);
  boundary.Run(kCredits);
  CopySeconds(here, there, 1);
  std::vector<double> times;
  std::vector<double> copies;
  std::vector<double> ratios;
  for (int i = 0; i < kSamples; ++i) {
    times.push_back(boundary.Run(count) / static_cast<double>(count));
    copies.push_back(CopySeconds(here, there, count) / static_cast<double>(count));
    ratios.push_back(times.back() / copies.back());
  }
  const Summary time = Summarize(times);
  const double rate = 2.0 * static_cast<double>(num_bytes) / time.median * 1e-9;
  const double copy_rate = 2.0 * static_cast<double>(num_bytes) / Summarize(copies).median * 1e-9;
  const Summary ratio = Summarize(ratios);
  report.AddRow({std::to_string(from) + " -> " + std::to_string(to), SizeName(num_bytes),
                 Fixed(time.median * 1e6, 1), Fixed(time.mad * 1e6, 1), Fixed(rate, 2),
                 Fixed(copy_rate, 2), Fixed(ratio.median, 3), Fixed(ratio.mad, 3)},
                {{"from", from},
                 {"to", to},
                 {"bytes", num_bytes},
                 {"there_and_back_s", times},
                 {"memcpy_there_and_back_s", copies}});
}

int Main(int argc, char** argv) {
  Report report(argc, argv, "boundary",
                {"dp", "bytes", "time_us", "mad_us", "GB/s", "memcpy", "ratio", "mad"});
  const std::vector<std::pair<int, int>> shapes = {{1, 1}, {4, 1}, {1, 4}, {3, 2}};
  for (const auto& [from, to] : shapes) {
    for (const std::int64_t kib : {64, 256, 1024, 4096, 16384, 65536}) {
      Measure(report, from, to, kib << 10);
    }
  }
  return report.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) { return troupe::bench::Main(argc, argv); }
