#include "plan/search/encoder_ways.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

/// The numbers of stages with a smaller largest stage than any fewer have.
static std::vector<int> StageCounts(std::int64_t layers, std::int64_t most) {
  std::vector<int> counts;
  std::int64_t largest = layers + 1;
  for (std::int64_t stages = 1; stages <= std::min(std::max<std::int64_t>(layers, 1), most);
       ++stages) {
    const std::int64_t size = (layers + stages - 1) / stages;
    if (size < largest) counts.push_back(static_cast<int>(stages));
    largest = std::min(largest, size);
  }
  return counts;
}

EncoderWays::EncoderWays(SearchJob& job) : job_(job) {
  for (std::size_t i = 0; i < job.encoders.size(); ++i) modules_.push_back(job.Encoder(i));
}

EncoderWays::Tables& EncoderWays::TablesOf(std::size_t encoder, int tp, std::size_t level) {
  const std::tuple key(encoder, tp, level);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  const std::string& name = job_.encoders[encoder];
  const Config with = job_.With(name, {.tp = tp}, RecomputeLevels()[level], 0);
  const AlikeLayers& layers = job_.LayersOf(name);
  ModuleTable one(with, name, kSamples, job_.device, job_.limits.average, layers);
  ModuleTable two(with, name, 2 * kSamples, job_.device, job_.limits.average, layers, &one);
  return tables_.emplace(key, Tables{std::move(one), std::move(two), {}}).first->second;
}

Pipeline EncoderWays::PipelineOf(std::size_t encoder, std::size_t level, const PipelineRun& run) {
  const ModuleConfig& module = modules_[encoder];
  Tables& tables = TablesOf(encoder, module.layout.tp, level);
  auto [cut, is_new] = tables.cut.try_emplace(module.layout.pp);
  if (is_new) {
    const auto& runs = job_.LayersOf(module.name).RunsOf(module);
    cut->second = {tables.one.Stages(runs), tables.two.Stages(runs)};
  }
  const auto stages = Between(cut->second.first, cut->second.second,
                              static_cast<double>(run.samples - kSamples) / kSamples);
  return troupe::PipelineOf(job_.config, job_.device, module, stages, run);
}

std::vector<std::vector<EncoderWay>> EncoderWays::With(const SinkPoint& sink) {
  std::vector<std::vector<EncoderWay>> all(modules_.size());
  for (std::size_t encoder = 0; encoder < modules_.size(); ++encoder) {
    if ((sink.inlined >> encoder & 1U) != 0U) {
      all[encoder].push_back({});
      continue;
    }
    for (const std::int64_t tp : PowersOfTwo(job_.device.topology.devices_per_node)) {
      if (!modules_[encoder].model->AllowsTp(static_cast<int>(tp))) continue;
      AddColocated(sink, encoder, static_cast<int>(tp), all[encoder]);
      AddDisjoint(sink, encoder, static_cast<int>(tp), all[encoder]);
    }
  }
  return all;
}

/// An encoder that encodes the whole step before the sink's pipeline, and runs backward after it.
void EncoderWays::AddColocated(const SinkPoint& sink, std::size_t encoder, int tp,
                               std::vector<EncoderWay>& ways) {
  const int ranks = sink.layout.num_ranks();
  if (ranks % tp != 0) return;
  Layout& layout = modules_[encoder].layout;
  layout = {.tp = tp, .dp = ranks / tp};
  if (!job_.IsLegal(modules_[encoder])) return;
  const std::int64_t samples = (job_.global_batch + layout.dp - 1) / layout.dp;
  for (std::size_t level = 0; level < RecomputeLevels().size(); ++level) {
    const Pipeline pipeline = PipelineOf(encoder, level, {.samples = samples});
    ways.push_back({{.ranks = 0,
                     .memory_bytes = pipeline.bytes,
                     .fixed_s = pipeline.first_s + pipeline.update_s},
                    {Placement::kColocated, layout, RecomputeLevels()[level]}});
  }
}

/// An encoder on its own ranks: it encodes a microbatch while the sink computes earlier ones.
void EncoderWays::AddDisjoint(const SinkPoint& sink, std::size_t encoder, int tp,
                              std::vector<EncoderWay>& ways) {
  const int left = job_.limits.ranks - sink.layout.num_ranks();
  const std::int64_t batch = sink.micro_batch_size * sink.layout.dp;
  const std::int64_t layers = job_.LayersOf(job_.encoders[encoder]).num_layers();
  const std::int64_t in_flight = std::int64_t{sink.layout.pp} * sink.chunks;
  Layout& layout = modules_[encoder].layout;
  for (const int pp : StageCounts(layers, std::min(left / tp, 8))) {
    for (const std::int64_t dp : DivisorsOf(batch)) {
      if (std::int64_t{tp} * pp * dp > left) break;
      layout = {.tp = tp, .pp = pp, .dp = static_cast<int>(dp)};
      if (!job_.IsLegal(modules_[encoder])) continue;
      for (std::size_t level = 0; level < RecomputeLevels().size(); ++level) {
        const Pipeline pipeline = PipelineOf(
            encoder, level,
            {.samples = batch / dp, .units = sink.microbatches, .units_behind = in_flight});
        if (pipeline.bytes > job_.most_bytes) continue;
        ways.push_back({{.ranks = layout.num_ranks(),
                         .first_s = pipeline.first_s,
                         .period_s = pipeline.period_s,
                         .after_s = pipeline.update_s},
                        {Placement::kDisjoint, layout, RecomputeLevels()[level]}});
        break;
      }
    }
  }
}

}  // namespace troupe
