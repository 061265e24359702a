#include "plan/search/encoder_ways.hpp"

#include <algorithm>
#include <utility>

#include "plan/memory.hpp"
#include "plan/pass_memory.hpp"

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

EncoderWays::EncoderWays(SearchJob& job) : job_(job), config_(job.config) {
  for (std::size_t i = 0; i < job.encoders.size(); ++i) modules_.push_back(job.Encoder(i));
}

EncoderWays::Tables& EncoderWays::TablesOf(std::size_t encoder, int tp, std::size_t level) {
  const std::tuple key(encoder, tp, level);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  const std::string& name = job_.encoders[encoder];
  const Config with = job_.With(name, {.tp = tp}, RecomputeLevels()[level], 0);
  const AlikeLayers& layers = job_.LayersOf(name);
  const DeviceModel& device = job_.DeviceOf(encoder);
  ModuleTable one(with, name, kSamples, device, job_.limits.average, layers);
  ModuleTable two(with, name, 2 * kSamples, device, job_.limits.average, layers, &one);
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
  return troupe::PipelineOf(job_.config, job_.DeviceOf(encoder), module, stages, run);
}

std::vector<std::vector<EncoderWay>> EncoderWays::With(const SinkPoint& sink) {
  std::vector<std::vector<EncoderWay>> all(modules_.size());
  for (std::size_t encoder = 0; encoder < modules_.size(); ++encoder) {
    if ((sink.inlined >> encoder & 1U) != 0U) {
      all[encoder].push_back({});
      continue;
    }
    const double waiting_bytes = WaitingBytes(sink, encoder);
    for (const int tp : TpsOf(encoder)) {
      for (std::size_t level = 0; !job_.HasOwnDevices(encoder) && level < RecomputeLevels().size();
           ++level) {
        auto way = Colocated(sink, encoder, tp, level);
        if (!way) break;
        way->option.memory_bytes += waiting_bytes;
        all[encoder].push_back(*way);
      }
      AddDisjoint(sink, encoder, tp, all[encoder]);
    }
  }
  return all;
}

std::vector<int> EncoderWays::TpsOf(std::size_t encoder) const {
  std::vector<int> tps;
  for (const std::int64_t tp : PowersOfTwo(job_.DeviceOf(encoder).topology.devices_per_node)) {
    if (modules_[encoder].model->AllowsTp(static_cast<int>(tp))) {
      tps.push_back(static_cast<int>(tp));
    }
  }
  return tps;
}

/// An encoder that encodes a window before the sink's pipeline has it, and runs backward after it.
std::optional<EncoderWay> EncoderWays::Colocated(const SinkPoint& sink, std::size_t encoder, int tp,
                                                 std::size_t level) {
  const int ranks = sink.layout.num_ranks();
  if (ranks % tp != 0) return std::nullopt;
  Layout& layout = modules_[encoder].layout;
  layout = {.tp = tp, .dp = ranks / tp};
  if (!job_.IsLegal(modules_[encoder])) return std::nullopt;
  const std::int64_t windows = sink.num_windows();
  const Pipeline pipeline =
      PipelineOf(encoder, level, {.samples = CeilDivide(job_.global_batch / windows, layout.dp)});
  return EncoderWay{
      {.ranks = 0,
       .memory_bytes = pipeline.bytes,
       .fixed_s = static_cast<double>(windows) * pipeline.first_s + pipeline.update_s},
      {Placement::kColocated, layout, RecomputeLevels()[level]}};
}

double EncoderWays::WaitingBytes(const SinkPoint& sink, std::size_t encoder) {
  std::ranges::find(config_.modules, job_.sink, &ModuleConfig::name)->layout = sink.layout;
  const EdgeConfig& edge = *config_.FindEdge(job_.encoders[encoder], job_.sink);
  const auto each = static_cast<double>(ArrivingBytes(config_, edge, sink.micro_batch_size));
  const std::int64_t window = sink.microbatches / sink.num_windows();
  return each * static_cast<double>(WaitingUnits(config_, edge, window).on_device);
}

double EncoderWays::MostShared(const SinkPoint& sink) {
  double sum = 0.0;
  for (std::size_t encoder = 0; encoder < modules_.size(); ++encoder) {
    if ((sink.inlined >> encoder & 1U) != 0U || job_.HasOwnDevices(encoder)) continue;
    double most = 0.0;
    for (const int tp : TpsOf(encoder)) {
      const auto way = Colocated(sink, encoder, tp, 0);
      if (way) most = std::max(most, way->option.memory_bytes);
    }
    sum += most + WaitingBytes(sink, encoder);
  }
  return sum;
}

/// An encoder on its own ranks: it encodes a microbatch while the sink computes earlier ones.
void EncoderWays::AddDisjoint(const SinkPoint& sink, std::size_t encoder, int tp,
                              std::vector<EncoderWay>& ways) {
  const auto own = job_.devices.own.find(job_.encoders[encoder]);
  const bool has_own = own != job_.devices.own.end();
  const int left = has_own ? own->second.number : job_.limits.ranks - sink.layout.num_ranks();
  const double most_bytes = job_.MostBytesOn(job_.DeviceOf(encoder));
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
        if (pipeline.bytes > most_bytes) continue;
        ways.push_back({{.ranks = has_own ? 0 : layout.num_ranks(),
                         .first_s = pipeline.first_s,
                         .period_s = pipeline.period_s,
                         .after_s = pipeline.update_s},
                        {Placement::kDisjoint, layout, RecomputeLevels()[level], has_own}});
        break;
      }
    }
  }
}

}  // namespace troupe
