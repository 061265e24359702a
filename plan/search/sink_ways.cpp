#include "plan/search/sink_ways.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace troupe {
namespace {

std::vector<ScheduleKind> KindsFor(const ModuleConfig& module) {
  if (module.chunks > 1) return {ScheduleKind::kInterleaved};
  if (module.layout.pp == 1 || module.keeps_parameters()) return {ScheduleKind::k1F1B};
  return {ScheduleKind::k1F1B, ScheduleKind::kZbH1};
}

/// The layout of the module with its experts divided in every way that `ranks` ranks allow, each of them
/// over at most `of_node`.
std::vector<Layout> ExpertDivisions(const ModuleConfig& module, int ranks, int of_node) {
  Layout layout = module.layout;
  const std::int64_t experts = module.model->num_experts();
  if (experts == 0) return {layout};
  std::vector<Layout> layouts;
  for (const std::int64_t etp : PowersOfTwo(of_node)) {
    layout.etp = static_cast<int>(etp);
    if (!module.model->AllowsEtp(layout.etp)) continue;
    for (const std::int64_t ep : DivisorsOf(experts)) {
      layout.ep = static_cast<int>(ep);
      if (layout.expert_group() <= ranks) layouts.push_back(layout);
    }
  }
  return layouts;
}

double LargestOf(const std::vector<StageSums>& stages) {
  double largest_s = 0.0;
  for (const StageSums& stage : stages) largest_s = std::max(largest_s, stage.each.pass_s);
  return largest_s;
}

}  // namespace

SinkWays::SinkWays(SearchJob& job) : job_(job) { AddDivisions(); }

void SinkWays::AddDivisions() {
  const ModelConfig& model = *job_.Sink().model;
  const std::int64_t context = model.text() ? model.text()->context : 1;
  constexpr std::int64_t kFewestTokens = 256;  // of a rank along cp
  const SearchLimits& limits = job_.limits;
  const int of_node = std::min(job_.devices.main.topology.devices_per_node, limits.ranks);
  for (const std::int64_t tp : PowersOfTwo(of_node)) {
    if (!model.AllowsTp(static_cast<int>(tp))) continue;
    for (const std::int64_t cp :
         PowersOfTwo(std::min(model.most_context_parts(), limits.ranks / tp))) {
      if (cp > 1 && context / cp < kFewestTokens) break;
      for (unsigned inlined = 0; inlined < 1U << job_.encoders.size(); ++inlined) {
        if (!MayInline(inlined, static_cast<int>(tp))) continue;
        for (const std::int64_t samples : PowersOfTwo(64)) {
          if (job_.global_batch % samples != 0) break;
          for (Layout layout : ExpertDivisions(job_.Sink(), limits.ranks, of_node)) {
            layout.tp = static_cast<int>(tp);
            layout.cp = static_cast<int>(cp);
            AddDivision(layout, samples, inlined);
          }
        }
      }
    }
  }
}

bool SinkWays::MayInline(unsigned inlined, int tp) const {
  for (std::size_t i = 0; i < job_.encoders.size(); ++i) {
    if ((inlined >> i & 1U) == 0U) continue;
    if (job_.HasOwnDevices(i) || !job_.Encoder(i).model->AllowsTp(tp)) return false;
  }
  return true;
}

const std::vector<StageRun>& SinkWays::RunsOf(const ModuleConfig& module) {
  return job_.LayersOf(job_.sink).RunsOf(module);
}

void SinkWays::AddDivision(const Layout& layout, std::int64_t samples, unsigned inlined) {
  Division& division = divisions_.emplace_back(Division{layout, samples, inlined, {}});
  for (const Recompute& level : RecomputeLevels()) {
    const Config with = job_.With(job_.sink, layout, level, inlined);
    const std::tuple key(layout.tp, layout.ep, layout.etp, inlined);
    const auto like = like_.find(key);
    division.tables.emplace_back(with, job_.sink, samples, job_.devices.main, job_.limits.average,
                                 job_.LayersOf(job_.sink),
                                 like == like_.end() ? nullptr : &like->second);
    if (like == like_.end()) like_.emplace(key, division.tables.back());
  }
  AddSets(divisions_.size() - 1);
}

void SinkWays::AddSets(std::size_t number) {
  const Division& division = divisions_[number];
  ModuleConfig module = job_.Sink();
  module.layout = division.layout;
  const std::int64_t layers = std::max<std::int64_t>(job_.LayersOf(job_.sink).num_layers(), 1);
  const std::int64_t most_stages =
      std::min(layers, job_.limits.ranks / (std::int64_t{module.layout.tp} * module.layout.cp));
  const ModuleTable& fastest = division.tables.front();
  double least_s = std::numeric_limits<double>::infinity();
  for (int pp = 1; pp <= most_stages; ++pp) {
    // More stages that make none of them smaller are of no use.
    const double enough_s = least_s * (1.0 - 1e-9);
    if (fastest.LeastOfLargest(pp) >= enough_s) continue;
    module.layout.pp = pp;
    module.chunks = 1;
    const double largest_s = LargestOf(fastest.Stages(RunsOf(module)));
    if (largest_s >= enough_s) continue;
    least_s = largest_s;
    for (const int chunks : {1, 2, 4}) {
      if (std::int64_t{pp} * chunks > layers || (chunks > 1 && pp == 1)) continue;
      module.chunks = chunks;
      for (std::size_t level = 0; level < division.tables.size(); ++level) {
        const auto stages = division.tables[level].Stages(RunsOf(module));
        const bool offloads =
            division.tables[level].hides_copies() && std::isfinite(job_.most_bytes);
        for (const ScheduleKind kind : KindsFor(module)) {
          AddSet({number, pp, chunks, level, kind}, module, stages);
          if (!offloads) continue;
          AddSet({number, pp, chunks, level, kind, true}, module, stages);
        }
      }
    }
  }
}

std::span<const std::int64_t> SinkWays::ReplicasOf(const Set& set) {
  const Division& division = divisions_[set.division];
  auto [divisors, is_new] = divisors_.try_emplace(division.samples);
  if (is_new) divisors->second = DivisorsOf(job_.global_batch / division.samples);
  const std::int64_t replica = std::int64_t{division.layout.tp} * division.layout.cp * set.pp;
  const auto end = std::ranges::upper_bound(divisors->second, job_.limits.ranks / replica);
  return {divisors->second.begin(), end};
}

void SinkWays::AddSet(const Set& set, ModuleConfig& module, const std::vector<StageSums>& stages) {
  const Division& division = divisions_[set.division];
  const auto replicas = ReplicasOf(set);
  num_ways_ += replicas.size();
  module.layout.dp = static_cast<int>(replicas.back());
  const std::int64_t units = job_.global_batch / division.samples / replicas.back();
  const Pipeline least = LeastPipelineOf(
      job_.config, job_.devices.main, module, stages,
      {.kind = set.kind, .samples = division.samples, .units = units, .offloads = set.offloads});
  if (least.bytes > job_.most_bytes) return;
  const double least_s =
      job_.devices.main.step_s + least.first_s + static_cast<double>(units - 1) * least.period_s;
  sets_.push_back(set);
  least_s_.push_back(least_s * (1.0 - 1e-9));  // sums in another order may be less
}

std::vector<SinkOption> SinkWays::Price(std::size_t index) {
  const Set& set = sets_[index];
  const Division& division = divisions_[set.division];
  ModuleConfig module = job_.Sink();
  module.layout = division.layout;
  module.layout.pp = set.pp;
  module.chunks = set.chunks;
  const auto stages = division.tables[set.level].Stages(RunsOf(module));
  std::vector<SinkOption> ways;
  for (const std::int64_t dp : ReplicasOf(set)) {
    ++num_priced_;
    module.layout.dp = static_cast<int>(dp);
    if (!job_.IsLegal(module)) continue;
    const std::int64_t microbatches = job_.global_batch / division.samples / dp;
    if (set.kind == ScheduleKind::kInterleaved && microbatches % set.pp != 0) continue;
    PipelineRun run = {.kind = set.kind, .samples = division.samples, .units = microbatches};
    Pipeline pipeline = PipelineOf(job_.config, job_.devices.main, module, stages, run);
    if (set.offloads) {
      if (pipeline.bytes <= job_.most_bytes) continue;  // it fits without
      run.offloads = true;
      pipeline = PipelineOf(job_.config, job_.devices.main, module, stages, run);
    }
    if (pipeline.bytes > job_.most_bytes) continue;
    AddWay({module.layout, division.samples, microbatches, set.kind, set.chunks,
            RecomputeLevels()[set.level], set.offloads, division.inlined},
           {.own = {.ranks = module.layout.num_ranks(),
                    .first_s = pipeline.first_s,
                    .period_s = pipeline.period_s,
                    .fixed_s = job_.devices.main.step_s,
                    .after_s = pipeline.update_s},
            .units = microbatches,
            .free_bytes = job_.most_bytes - pipeline.bytes},
           ways);
  }
  return ways;
}

/// Adds a way with windows of a step, and if they may save memory, with shorter ones.
void SinkWays::AddWay(const SinkPoint& point, SinkOption option, std::vector<SinkOption>& ways) {
  const std::size_t whole_step = points_.size();
  const double whole_s = option.own.fixed_s;
  const bool shortens = std::isfinite(job_.most_bytes) &&
                        point.inlined + 1 < 1U << job_.encoders.size() &&
                        point.kind != ScheduleKind::kInterleaved;
  for (const std::int64_t window : HalvesOf(point.microbatches)) {
    option.group = points_.size();
    points_.push_back(point);
    whole_step_.push_back(whole_step);
    free_bytes_.push_back(option.free_bytes);
    SinkPoint& own = points_.back();
    own.window = window == point.microbatches ? 0 : window;
    // Each further window begins with an empty pipeline.
    option.own.fixed_s = whole_s + static_cast<double>(own.num_windows() - 1) *
                                       (option.own.first_s - option.own.period_s);
    ways.push_back(option);
    if (!shortens) break;
  }
}

}  // namespace troupe
