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

/// Returns whether half the cp and twice the replicas divide `samples` as evenly: they take no longer and hold
/// no more.
static bool CutsForNothing(const Layout& layout, std::int64_t samples) {
  return layout.cp > 1 && samples % (2 * std::int64_t{layout.dp}) == 0;
}

EncoderWays::EncoderWays(SearchJob& job) : job_(job), config_(job.config) {
  for (std::size_t i = 0; i < job.encoders.size(); ++i) modules_.push_back(job.Encoder(i));
}

EncoderWays::Tables& EncoderWays::TablesOf(std::size_t encoder, std::size_t level) {
  const Layout& layout = modules_[encoder].layout;
  const std::tuple key(encoder, layout.tp, layout.cp, level);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  const std::string& name = job_.encoders[encoder];
  const Config with = job_.With(name, layout, RecomputeLevels()[level], 0);
  const AlikeLayers& layers = job_.LayersOf(name);
  const DeviceModel& device = job_.DeviceOf(encoder);
  ModuleTable one(with, name, kSamples, device, job_.limits.average, layers);
  ModuleTable two(with, name, 2 * kSamples, device, job_.limits.average, layers, &one);
  return tables_.emplace(key, Tables{std::move(one), std::move(two), {}}).first->second;
}

Pipeline EncoderWays::PipelineOf(std::size_t encoder, std::size_t level, const PipelineRun& run) {
  const ModuleConfig& module = modules_[encoder];
  Tables& tables = TablesOf(encoder, level);
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
    for (const Layout& division : DivisionsOf(encoder)) {
      if (!job_.HasOwnDevices(encoder)) AddColocated(sink, encoder, division, all[encoder]);
      AddDisjoint(sink, encoder, division, all[encoder]);
    }
  }
  return all;
}

std::vector<Layout> EncoderWays::DivisionsOf(std::size_t encoder) const {
  constexpr std::int64_t kFewestRows = 64;  // of an image that a rank along cp has
  const ModelConfig& model = *modules_[encoder].model;
  const int of_node = job_.DeviceOf(encoder).topology.devices_per_node;
  std::vector<Layout> divisions;
  for (const std::int64_t tp : PowersOfTwo(of_node)) {
    if (!model.AllowsTp(static_cast<int>(tp))) continue;
    for (const std::int64_t cp : PowersOfTwo(of_node)) {
      if (cp > 1 && model.most_context_parts() / cp < kFewestRows) break;
      divisions.push_back({.tp = static_cast<int>(tp), .cp = static_cast<int>(cp)});
    }
  }
  return divisions;
}

/// An encoder that encodes a window before the sink's pipeline has it, and runs backward after it.
std::optional<EncoderWay> EncoderWays::Colocated(const SinkPoint& sink, std::size_t encoder,
                                                 const Layout& division, std::size_t level) {
  const int ranks = sink.layout.num_ranks();
  if (ranks % division.num_ranks() != 0) return std::nullopt;
  Layout& layout = modules_[encoder].layout;
  layout = division;
  layout.dp = ranks / division.num_ranks();
  const std::int64_t windows = sink.num_windows();
  const std::int64_t samples = job_.global_batch / windows;
  if (CutsForNothing(layout, samples) || !job_.IsLegal(modules_[encoder])) return std::nullopt;
  const Pipeline pipeline = PipelineOf(encoder, level, {.samples = CeilDivide(samples, layout.dp)});
  return EncoderWay{
      {.ranks = 0,
       .memory_bytes = pipeline.bytes,
       .fixed_s = static_cast<double>(windows) * pipeline.first_s + pipeline.update_s},
      {Placement::kColocated, layout, RecomputeLevels()[level]}};
}

void EncoderWays::AddColocated(const SinkPoint& sink, std::size_t encoder, const Layout& division,
                               std::vector<EncoderWay>& ways) {
  for (std::size_t level = 0; level < RecomputeLevels().size(); ++level) {
    auto way = Colocated(sink, encoder, division, level);
    if (!way) return;
    way->option.memory_bytes += WaitingBytes(sink, encoder);
    ways.push_back(*way);
  }
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
    for (const Layout& division : DivisionsOf(encoder)) {
      const auto way = Colocated(sink, encoder, division, 0);
      if (way) most = std::max(most, way->option.memory_bytes);
    }
    sum += most + WaitingBytes(sink, encoder);
  }
  return sum;
}

/// An encoder on its own ranks: it encodes a microbatch while the sink computes earlier ones.
void EncoderWays::AddDisjoint(const SinkPoint& sink, std::size_t encoder, const Layout& division,
                              std::vector<EncoderWay>& ways) {
  const bool has_own = job_.HasOwnDevices(encoder);
  const int left = has_own ? job_.devices.own.at(job_.encoders[encoder]).number
                           : job_.limits.ranks - sink.layout.num_ranks();
  const double most_bytes = job_.MostBytesOn(job_.DeviceOf(encoder));
  const std::int64_t batch = sink.micro_batch_size * sink.layout.dp;
  const std::int64_t layers = job_.LayersOf(job_.encoders[encoder]).num_layers();
  const std::int64_t in_flight = std::int64_t{sink.layout.pp} * sink.chunks;
  Layout& layout = modules_[encoder].layout;
  for (const int pp : StageCounts(layers, std::min(left / division.num_ranks(), 8))) {
    for (const std::int64_t dp : DivisorsOf(batch)) {
      if (std::int64_t{division.num_ranks()} * pp * dp > left) break;
      layout = division;
      layout.pp = pp;
      layout.dp = static_cast<int>(dp);
      if (CutsForNothing(layout, batch) || !job_.IsLegal(modules_[encoder])) continue;
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
