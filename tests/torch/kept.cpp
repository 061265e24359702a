#include "tests/torch/kept.hpp"

#include <malloc.h>

#include "plan/pass_memory.hpp"
#include "tests/torch/processes.hpp"

namespace troupe {

Inputs LongInputs(std::int64_t samples) {
  Inputs inputs;
  inputs.tokens = Buffer::Allocate({samples, kTokensOfEach}, DType::kInt64);
  inputs.labels = Buffer::Allocate({samples, kTokensOfEach}, DType::kInt64);
  for (std::int64_t i = 0; i < samples * kTokensOfEach; ++i) {
    inputs.tokens.as<std::int64_t>()[i] = (i * 7 + i / 4) % 21;
    inputs.labels.as<std::int64_t>()[i] = i % 5 == 0 ? -100 : (i * 11) % 21;
  }
  inputs.content = Buffer::Zeros({samples, kTokensOfEach}, DType::kUInt8);
  return inputs;
}

std::shared_ptr<const Inputs> LongData(std::int64_t samples) {
  auto data = std::make_shared<Inputs>(LongInputs(samples));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    data->table.samples.push_back(sample);
    data->table.rows.push_back(kTokensOfEach);
  }
  return data;
}

Config LongLanguage(Layout layout, Precision precision) {
  Config config = LanguageAlone(layout, precision);
  ModuleOf(config, "language").As<LlamaConfig>().context = kTokensOfEach;
  return config;
}

namespace {

/// Bytes that the forward of a microbatch has left in memory on all ranks together.
double KeptByForward(const Config& config) {
  Job job(config);
  const int num_ranks = config.cluster.ranks;
  const auto data = LongData(8);
  const auto forward = [&](std::int64_t unit) {
    std::vector<std::function<void()>> work;
    for (int i = 0; i < num_ranks; ++i) {
      work.emplace_back([&, i] {
        job.Program("language", 0, 0, i).Forward({.unit = unit, .inputs = {}, .data = data});
      });
    }
    RunThreads(work);
  };
  forward(0);  // leaves buffers of the library, too
  const auto used = [] {
    const auto info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  const double before = used();
  forward(1);
  return used() - before;
}

}  // namespace

double KeptByLayer(const Config& config) {
  return (KeptByForward(WithLayers(config, 9)) - KeptByForward(WithLayers(config, 1))) / 8;
}

double EstimatedOfLayer(const Config& config) {
  const auto kept = [&config](std::int64_t layers) {
    Config own = WithLayers(config, layers);
    own.schedule.micro_batch_size = 8;
    return static_cast<double>(EstimateUnit(own, "language", 0).kept) * config.cluster.ranks;
  };
  return (kept(9) - kept(1)) / 8;
}

}  // namespace troupe
