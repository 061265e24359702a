#include "plan/search/pipeline.hpp"

#include <algorithm>
#include <limits>

#include "plan/cost/stage_cost.hpp"
#include "plan/pass_memory.hpp"
#include "plan/unit_samples.hpp"

namespace troupe {
namespace {

PartSums Between(const PartSums& one, const PartSums& two, double weight) {
  PartSums sums = two;
  sums.Add(two, weight - 1.0);
  sums.Add(one, 1.0 - weight);
  sums.held = one.held;
  return sums;
}

/// The bytes of a unit's tensor between two stages, of each rank.
double HopBytes(const Config& config, const ModuleConfig& module, std::int64_t samples) {
  const Layout& layout = module.layout;
  const auto text = module.model->text();
  const std::int64_t rows =
      samples *
      (text ? text->context : MostItemsOfSample(config, module) * module.model->rows_per_item());
  const double parts = layout.cp * (layout.cuts_rows() ? layout.tp : 1.0);
  return RowBytes(config) * Product(rows, module.model->row_width()) / parts;
}

/// The sums over all stages that times follow from.
struct AllStages {
  double sum_s = 0.0;
  double split_s = 0.0;  ///< the most of a stage's passes less twice the weights
  double largest_s = 0.0;
  int number = 0;

  explicit AllStages(const std::vector<StageSums>& stages) {
    for (const StageSums& stage : stages) {
      sum_s += stage.stages * stage.each.pass_s;
      split_s = std::max(split_s, stage.each.pass_s - 2.0 * stage.each.weights_s);
      largest_s = std::max(largest_s, stage.each.pass_s);
      number += stage.stages;
    }
  }
};

/// The times of units, if the busiest rank takes `busy_s` for one, and a hop between stages `hop_s`.
Pipeline TimesOf(const AllStages& all, const ModuleConfig& module, ScheduleKind kind, double busy_s,
                 double hop_s) {
  const int pp = module.layout.pp;
  Pipeline pipeline;
  // A stage that has sent a unit on waits for the hop before it can take the answer.
  pipeline.period_s = busy_s + hop_s;
  pipeline.first_s = all.sum_s;
  if (kind == ScheduleKind::kInterleaved) {
    pipeline.first_s = pipeline.period_s * (1.0 + (pp - 1.0) / module.chunks);
  }
  if (kind == ScheduleKind::kZbH1) {
    pipeline.first_s = pipeline.period_s + (pp - 1.0) * std::max(0.0, all.split_s);
  }
  pipeline.first_s += 2.0 * hop_s * (all.number - 1);
  return pipeline;
}

/// The most units that stage `stage` of `number` keeps at one time.
std::int64_t KeptBy(int stage, int number, const ModuleConfig& module, const PipelineRun& run) {
  const int pp = module.layout.pp;
  if (run.kind == ScheduleKind::kInterleaved) {
    return KeptInterleaved(pp, module.chunks, stage % pp, stage / pp, run.units);
  }
  const std::int64_t kept =
      run.kind == ScheduleKind::kZbH1 ? pp : number - stage + run.units_behind;
  return std::min(kept, run.units);
}

/// The bytes of activations of a stage that keeps `units` units, and of `owed` of them only defers the work
/// for weights.
double HeldOf(const StageSums& stage, const PipelineRun& run, std::int64_t units,
              std::int64_t owed) {
  const auto kept = static_cast<double>(units);
  const auto deferred = static_cast<double>(owed);
  const double away = run.offloads ? stage.away_bytes : 0.0;
  return (stage.each.kept_bytes - away) * kept +
         HereOf(away, stage.largest_away_bytes, kept, deferred) +
         (stage.each.owed_bytes - stage.each.kept_bytes) * deferred;
}

/// The most bytes of activations that stage `stage` of `number` keeps at one time. Of a schedule that
/// splits backwards, later stages defer the work for weights of more of their units.
double ActivationsOf(const StageSums& each, int stage, int number, const ModuleConfig& module,
                     const PipelineRun& run) {
  const std::int64_t owed =
      run.kind == ScheduleKind::kZbH1 ? std::min<std::int64_t>(stage + 1, run.units) : 0;
  return HeldOf(each, run, KeptBy(stage, number, module, run), owed);
}

}  // namespace

std::vector<StageSums> Between(const std::vector<StageSums>& one, const std::vector<StageSums>& two,
                               double weight) {
  std::vector<StageSums> sums = one;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].each = Between(one[i].each, two[i].each, weight);
    const auto between = [&](double StageSums::*bytes) {
      sums[i].*bytes += weight * (two[i].*bytes - one[i].*bytes);
    };
    between(&StageSums::away_bytes);
    between(&StageSums::largest_away_bytes);
  }
  return sums;
}

std::int64_t KeptInterleaved(int pp, int chunks, int rank, int chunk, std::int64_t units) {
  const std::int64_t turn = std::int64_t{pp} * chunks;
  const std::int64_t total = units * chunks;
  const std::int64_t warmup =
      std::min(total, std::int64_t{2} * (pp - rank - 1) + std::int64_t{pp} * (chunks - 1));
  // It keeps most before the first backward of the chunk; backwards take the chunks in reverse.
  const std::int64_t forwards =
      std::min(total, warmup + std::int64_t{pp} * (chunks - 1 - chunk) + 1);
  return forwards / turn * pp +
         std::clamp<std::int64_t>(forwards % turn - std::int64_t{pp} * chunk, 0, pp);
}

Pipeline PipelineOf(const Config& config, const DeviceModel& device, const ModuleConfig& module,
                    const std::vector<StageSums>& stages, const PipelineRun& run) {
  const Layout& layout = module.layout;
  const AllStages all(stages);
  const StateShardings shardings = ShardingsOf(config, module);
  const StateWeights weights = WeightsOf(config, shardings);
  struct Rank {
    double busy_s = 0.0;
    double bytes = 0.0;
    double update_s = 0.0;
  };
  std::vector<Rank> ranks(module.chunks > 1 ? static_cast<std::size_t>(layout.pp) : 1);
  Rank most;
  int next = 0;
  for (const StageSums& same : stages) {
    const PartSums& each = same.each;
    const UpdateCost update =
        CostOfUpdate(config, device, layout, shardings.others,
                     {.trained = each.held.trained,
                      .own = (each.held.trained - each.held.experts) / shardings.others.shards +
                             each.held.experts / shardings.experts.shards,
                      .layers = same.layers,
                      .last_backward_s = each.backward_s});
    const double state = weights.BytesOf(each.held);
    const int first = next;
    next += same.stages;
    // Of stages that are alike and alone on their ranks, the first keeps most, or if all keep as many
    // units, the last.
    const bool last_keeps_most = run.kind == ScheduleKind::kZbH1;
    const int end = module.chunks > 1 ? next : first + 1;
    for (int stage = first; stage < end; ++stage) {
      Rank& rank = ranks[static_cast<std::size_t>(stage) % ranks.size()];
      if (module.chunks == 1) rank = {};
      rank.busy_s += each.pass_s;
      rank.bytes +=
          state + ActivationsOf(same, last_keeps_most ? next - 1 : stage, all.number, module, run);
      rank.update_s += update.exposed_s + update.update_s + update.gather_s;
      most.busy_s = std::max(most.busy_s, rank.busy_s);
      most.bytes = std::max(most.bytes, rank.bytes);
      most.update_s = std::max(most.update_s, rank.update_s);
    }
  }
  double hop_s = 0.0;
  if (layout.pp > 1) {
    const Topology& links = device.topology;
    const bool inside = layout.num_ranks() <= links.devices_per_node;
    hop_s = (inside ? links.inside : links.between).TimeOf(HopBytes(config, module, run.samples));
  }
  Pipeline pipeline = TimesOf(all, module, run.kind, most.busy_s, hop_s);
  pipeline.update_s = most.update_s;
  pipeline.bytes = most.bytes;
  return pipeline;
}

Pipeline LeastPipelineOf(const Config& config, const DeviceModel& device,
                         const ModuleConfig& module, const std::vector<StageSums>& stages,
                         const PipelineRun& run) {
  const Layout& layout = module.layout;
  const AllStages all(stages);
  double hop_s = 0.0;
  if (layout.pp > 1) {
    const double bytes = HopBytes(config, module, run.samples);
    hop_s = std::min(device.topology.inside.TimeOf(bytes), device.topology.between.TimeOf(bytes));
  }
  const double busy_s = std::max(all.largest_s, all.sum_s / layout.pp);
  Pipeline least = TimesOf(all, module, run.kind, busy_s, hop_s);
  // With fewer replicas, holders have larger parts; how experts are divided may be finer.
  StateShardings shardings = ShardingsOf(config, module);
  shardings.experts.shards = std::numeric_limits<int>::max();
  const StateWeights weights = WeightsOf(config, shardings);
  PipelineRun fewest = run;
  if (run.kind == ScheduleKind::kInterleaved) {
    fewest.units = CeilDivide(run.units, layout.pp) * layout.pp;
  }
  double first_rank = 0.0;  // of an interleaved pipeline, which keeps as much as any
  int next = 0;
  for (const StageSums& same : stages) {
    const double state = weights.BytesOf(same.each.held);
    const auto bytes_of = [&](int stage) {
      return state + HeldOf(same, fewest, KeptBy(stage, all.number, module, fewest), 0);
    };
    const int end = next + same.stages;
    if (module.chunks == 1) {
      least.bytes = std::max(least.bytes, bytes_of(next));
    } else {
      const int pp = layout.pp;
      for (int stage = (next + pp - 1) / pp * pp; stage < end; stage += pp) {
        first_rank += bytes_of(stage);
      }
    }
    next = end;
  }
  least.bytes = std::max(least.bytes, first_rank);
  return least;
}

}  // namespace troupe
