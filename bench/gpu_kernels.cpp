// Compares our kernels on device 0 with copies on the device that move as many bytes.
// bench/README.md explains the columns. Without a device it reports that and measures nothing.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <numeric>
#include <random>

#include "bench/report.hpp"
#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "gpu/kernels/bfloat16.hpp"
#include "gpu/kernels/device.hpp"
#include "gpu/kernels/rms_norm.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/memory.hpp"
#include "gpu/stream.hpp"

namespace troupe::bench {
namespace {

constexpr int kSamples = 15;
/// Calls of a sample use different memory, together more than any device's cache.
constexpr std::size_t kAllSets = 512U << 20U;
constexpr std::size_t kMaxSets = 64;

using gpu::Event;
using Bytes = std::vector<std::byte>;

struct Bed {
  gpu::Stream stream{0};

  std::shared_ptr<std::byte> Copy(const void* from, std::size_t bytes) {
    auto there = Allocate(bytes);
    TROUPE_CUDA(cudaMemcpyAsync(there.get(), from, bytes, cudaMemcpyHostToDevice, stream.get()));
    stream.Synchronize();
    return there;
  }
  /// Filled with 0xff, so that unwritten memory shows.
  std::shared_ptr<std::byte> Allocate(std::size_t bytes) {
    auto there = std::static_pointer_cast<std::byte>(gpu::AllocateOnDevice(0, bytes));
    TROUPE_CUDA(cudaMemsetAsync(there.get(), 0xff, bytes, stream.get()));
    return there;
  }
  template <class T>
  std::vector<T> Read(const std::byte* there, std::size_t count) {
    std::vector<T> values(count);
    TROUPE_CUDA(cudaMemcpyAsync(values.data(), there, count * sizeof(T), cudaMemcpyDeviceToHost,
                                stream.get()));
    stream.Synchronize();
    return values;
  }
};

/// Microseconds per call, one number for each sample. `call(i)` queues the i-th of `sets` calls;
/// they are recorded once and replayed, so that the host's time between them is not measured.
std::vector<double> Microseconds(Bed& bed, std::size_t sets,
                                 const std::function<void(std::size_t)>& call) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  TROUPE_CUDA(cudaStreamBeginCapture(bed.stream.get(), cudaStreamCaptureModeThreadLocal));
  for (std::size_t i = 0; i < sets; ++i) call(i);
  TROUPE_CUDA(cudaStreamEndCapture(bed.stream.get(), &graph));
  TROUPE_CUDA(cudaGraphInstantiate(&replay, graph, 0));
  Event begin(0, Event::Timed::kYes);
  Event end(0, Event::Timed::kYes);
  std::vector<double> samples;
  for (int sample = -2; sample < kSamples; ++sample) {  // two to warm up
    begin.Record(bed.stream);
    TROUPE_CUDA(cudaGraphLaunch(replay, bed.stream.get()));
    end.Record(bed.stream);
    bed.stream.Synchronize();
    if (sample < 0) continue;
    samples.push_back(1e3 * static_cast<double>(end.MillisecondsSince(begin)) /
                      static_cast<double>(sets));
  }
  TROUPE_CUDA(cudaGraphExecDestroy(replay));
  TROUPE_CUDA(cudaGraphDestroy(graph));
  return samples;
}

/// One kernel at one size.
struct Case {
  std::string kernel;
  std::string size;        ///< as in the table
  std::size_t moved = 0;   ///< bytes read and written by a call
  std::size_t of_set = 0;  ///< bytes of a call's memory
};

std::size_t SetsOf(std::size_t bytes) {
  return std::clamp<std::size_t>(kAllSets / bytes, 2, kMaxSets);
}

class Bench {
 public:
  Bench(int argc, char** argv)
      : report_(argc, argv, "gpu_kernels",
                {"kernel", "size", "rows", "median_us", "mad_us", "GB/s", "copy_GB/s", "of_copy"}) {
    const gpu::DeviceFacts facts = gpu::FactsOf(0);
    report_.AddLine("device 0: " + facts.name + ", " + std::to_string(facts.multiprocessors) +
                    " multiprocessors");
  }

  void RunRows(std::size_t mib, std::size_t row_bytes);
  void RunAdamW(std::size_t mib);
  void RunNorm(std::size_t mib, std::int64_t hidden);
  int Finish() { return report_.Finish(); }

 private:
  void Measure(const Case& bench_case, const std::string& rows,
               const std::function<void(std::size_t)>& call);
  void Check(bool right, const Case& bench_case) {
    if (!right)
      report_.AddFault(bench_case.kernel + " of " + bench_case.size +
                       ": differs from the plain loop");
  }

  Bed bed_;
  Report report_;
};

void Bench::Measure(const Case& bench_case, const std::string& rows,
                    const std::function<void(std::size_t)>& call) {
  const auto samples = Microseconds(bed_, SetsOf(bench_case.of_set), call);
  // A copy that reads and writes as many bytes, in as many places.
  const std::size_t half = bench_case.moved / 2;
  const std::size_t sets = SetsOf(2 * half);
  const auto from = bed_.Allocate(half * sets);
  const auto to = bed_.Allocate(half * sets);
  const auto copies = Microseconds(bed_, sets, [&](std::size_t i) {
    TROUPE_CUDA(cudaMemcpyAsync(to.get() + i * half, from.get() + i * half, half,
                                cudaMemcpyDeviceToDevice, bed_.stream.get()));
  });
  const Summary own = Summarize(samples);
  const Summary copy = Summarize(copies);
  const auto rate = [&](double us) { return static_cast<double>(bench_case.moved) / us / 1e3; };
  const double share = copy.median / own.median;
  report_.AddRow({bench_case.kernel, bench_case.size, rows, Fixed(own.median, 2), Fixed(own.mad, 2),
                  Fixed(rate(own.median), 0), Fixed(rate(copy.median), 0), Fixed(share, 3)},
                 {{"kernel", bench_case.kernel},
                  {"size", bench_case.size},
                  {"rows", rows},
                  {"bytes", bench_case.moved},
                  {"us", samples},
                  {"copy_us", copies},
                  {"gb_per_s", rate(own.median)},
                  {"copy_gb_per_s", rate(copy.median)},
                  {"of_copy", share}});
}

void Bench::RunRows(std::size_t mib, std::size_t row_bytes) {
  const std::size_t bytes = mib << 20U;
  const auto num_rows = static_cast<std::int64_t>(bytes / row_bytes);
  std::mt19937_64 random(mib * row_bytes);
  Bytes rows(bytes);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(rows.data() + i, &word, 8);
  }
  std::vector<std::int64_t> index(static_cast<std::size_t>(num_rows));
  std::iota(index.begin(), index.end(), 0);
  std::shuffle(index.begin(), index.end(), random);

  const std::size_t sets = SetsOf(2 * bytes);
  const auto table = bed_.Copy(index.data(), index.size() * sizeof(std::int64_t));
  const auto* const places = reinterpret_cast<const std::int64_t*>(table.get());
  const auto sources = bed_.Allocate(bytes * sets);
  const auto results = bed_.Allocate(bytes * sets);
  for (std::size_t i = 0; i < sets; ++i) {
    TROUPE_CUDA(cudaMemcpyAsync(sources.get() + i * bytes, rows.data(), bytes,
                                cudaMemcpyHostToDevice, bed_.stream.get()));
  }
  const std::string size = std::to_string(mib) + " MiB";
  const std::string shape = std::to_string(num_rows) + "x" + std::to_string(row_bytes) + " B";
  const auto source = [&](std::size_t i) { return sources.get() + i * bytes; };
  const auto result = [&](std::size_t i) { return results.get() + i * bytes; };
  Bytes expected(bytes);

  const Case gather{"gather", size, 2 * bytes, 2 * bytes};
  Measure(gather, shape, [&](std::size_t i) {
    gpu::GatherRows(bed_.stream, source(i), places, num_rows, row_bytes, result(i));
  });
  GatherRows(rows.data(), index.data(), num_rows, row_bytes, expected.data());
  Check(bed_.Read<std::byte>(result(sets - 1), bytes) == expected, gather);

  const Case scatter{"scatter", size, 2 * bytes, 2 * bytes};
  Measure(scatter, shape, [&](std::size_t i) {
    gpu::ScatterRows(bed_.stream, source(i), places, num_rows, row_bytes, result(i));
  });
  ScatterRows(rows.data(), index.data(), num_rows, row_bytes, expected.data());
  Check(bed_.Read<std::byte>(result(sets - 1), bytes) == expected, scatter);

  const Case checksum{"checksum", size, bytes, bytes};
  const auto sums = bed_.Allocate(index.size() * sizeof(std::uint64_t));
  auto* const sum = reinterpret_cast<std::uint64_t*>(sums.get());
  Measure(checksum, shape, [&](std::size_t i) {
    gpu::RowChecksums(bed_.stream, source(i % sets), num_rows, row_bytes, sum);
  });
  std::vector<std::uint64_t> expected_sums(index.size());
  RowChecksums(rows.data(), num_rows, row_bytes, expected_sums.data());
  Check(bed_.Read<std::uint64_t>(sums.get(), index.size()) == expected_sums, checksum);

  // Last, since it leaves zeros: a replay takes rows that the previous one has zeroed, at the same
  // cost. A separate call checks it.
  const Case take{"take", size, 3 * bytes, 2 * bytes};
  Measure(take, shape, [&](std::size_t i) {
    gpu::TakeRows(bed_.stream, source(i), places, num_rows, row_bytes, result(i));
  });
  const auto full = bed_.Copy(rows.data(), bytes);
  gpu::TakeRows(bed_.stream, full.get(), places, num_rows, row_bytes, result(0));
  TakeRows(rows.data(), index.data(), num_rows, row_bytes, expected.data());
  Check(bed_.Read<std::byte>(result(0), bytes) == expected &&
            bed_.Read<std::byte>(full.get(), bytes) == rows,
        take);
}

/// `mib` of values in float32; as much of gradients and of either moment.
void Bench::RunAdamW(std::size_t mib) {
  const std::size_t count = (mib << 20U) / sizeof(float);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> host[4];
  for (auto& values : host) {
    values.resize(count);
    for (float& value : values) value = normal(random);
  }
  for (float& value : host[3]) value *= value;
  const AdamWStep step{
      .learning_rate = 1e-3, .weight_decay = 0.1, .gradient_scale = 0.5, .step = 7};
  const Case bench_case{"adamw", std::to_string(mib) + " MiB", 30 * count, 18 * count};
  const std::size_t sets = SetsOf(bench_case.of_set);
  struct Set {
    std::shared_ptr<std::byte> gradient, value, first, second, rounded;
  };
  const auto make = [&] {
    const std::size_t bytes = count * sizeof(float);
    return Set{bed_.Copy(host[0].data(), bytes), bed_.Copy(host[1].data(), bytes),
               bed_.Copy(host[2].data(), bytes), bed_.Copy(host[3].data(), bytes),
               bed_.Allocate(count * 2)};
  };
  const auto apply = [&](const Set& set) {
    const auto floats = [](const auto& memory) { return reinterpret_cast<float*>(memory.get()); };
    gpu::ApplyAdamW(bed_.stream, step, static_cast<std::int64_t>(count), floats(set.gradient),
                    floats(set.value), floats(set.first), floats(set.second),
                    reinterpret_cast<std::uint16_t*>(set.rounded.get()));
  };
  std::vector<Set> all(sets);
  std::ranges::generate(all, make);
  Measure(bench_case, std::to_string(count), [&](std::size_t i) { apply(all[i]); });

  const Set one = make();
  apply(one);
  ApplyAdamW(step, static_cast<std::int64_t>(count), host[0].data(), host[1].data(), host[2].data(),
             host[3].data());
  const auto got = bed_.Read<float>(one.value.get(), count);
  bool right = true;
  for (std::size_t i = 0; i < count; ++i) {
    right = right && std::abs(got[i] - host[1][i]) <= 1e-6F + 1e-5F * std::abs(host[1][i]);
  }
  Check(right, bench_case);
}

/// `mib` of rows in bfloat16, forward and back.
void Bench::RunNorm(std::size_t mib, std::int64_t hidden) {
  const std::size_t bytes = mib << 20U;
  const auto num_rows = static_cast<std::int64_t>(bytes / 2) / hidden;
  const auto width = static_cast<std::size_t>(hidden);
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  std::vector<float> rows(bytes / 2);
  std::vector<std::uint16_t> stored(bytes / 2);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    stored[i] = BFloat16(normal(random)).bits;
    rows[i] = static_cast<float>(std::bit_cast<BFloat16>(stored[i]));
  }
  const std::vector<float> weight(width, 1.25F);
  const auto weights = bed_.Copy(weight.data(), width * sizeof(float));
  const auto floats = [](const auto& memory) { return reinterpret_cast<float*>(memory.get()); };
  struct Set {
    std::shared_ptr<std::byte> x, y, rstd, gradient;
  };
  const auto make = [&] {
    return Set{bed_.Copy(stored.data(), bytes), bed_.Allocate(bytes),
               bed_.Allocate(static_cast<std::size_t>(num_rows) * sizeof(float)),
               bed_.Allocate(bytes)};
  };
  const std::string shape = std::to_string(num_rows) + "x" + std::to_string(2 * hidden) + " B";
  const Case norm{"norm", std::to_string(mib) + " MiB", 2 * bytes, 3 * bytes};
  const Case back{"norm back", norm.size, 3 * bytes, 3 * bytes};
  std::vector<Set> all(SetsOf(norm.of_set));
  std::ranges::generate(all, make);
  Measure(norm, shape, [&](std::size_t i) {
    const Set& set = all[i % all.size()];
    gpu::RmsNorm(bed_.stream, gpu::Row::kBFloat16, set.x.get(), floats(weights), num_rows, hidden,
                 1e-5, set.y.get(), floats(set.rstd));
  });
  const auto sums = bed_.Allocate(width * sizeof(float));
  const auto spare =
      bed_.Allocate(static_cast<std::size_t>(gpu::SpareOfRmsNorm(hidden)) * sizeof(float));
  Measure(back, shape, [&](std::size_t i) {
    const Set& set = all[i % all.size()];
    gpu::RmsNormGradient(bed_.stream, gpu::Row::kBFloat16, set.y.get(), set.x.get(),
                         floats(weights), floats(set.rstd), num_rows, hidden, set.gradient.get(),
                         floats(sums), floats(spare));
  });

  std::vector<float> y(rows.size());
  std::vector<float> rstd(static_cast<std::size_t>(num_rows));
  RmsNormRows(rows.data(), weight.data(), num_rows, hidden, 1e-5, y.data(), rstd.data());
  const auto got = bed_.Read<std::uint16_t>(all[0].y.get(), y.size());
  bool right = true;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto value = static_cast<float>(std::bit_cast<BFloat16>(got[i]));
    right = right && std::abs(value - y[i]) <= 1e-5F + std::abs(y[i]) / 128;
  }
  Check(right, norm);
}

int Run(int argc, char** argv) {
  if (gpu::NumDevices() == 0) {
    std::cout << "gpu_kernels: no CUDA device on this machine: nothing is measured\n";
    return 0;
  }
  Bench bench(argc, argv);
  for (const std::size_t mib : {1, 16, 64}) {
    for (const std::size_t row_bytes : {512, 4096, 8192}) bench.RunRows(mib, row_bytes);
    bench.RunAdamW(mib);
    bench.RunNorm(mib, 2048);
  }
  return bench.Finish();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  try {
    return troupe::bench::Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
