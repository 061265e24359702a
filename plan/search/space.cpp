#include "plan/search/space.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "plan/cost/stage_cost.hpp"
#include "plan/layer_split.hpp"
#include "plan/search/module_table.hpp"
#include "plan/search/pipeline.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// From keeping all to keeping little.
const std::vector<Recompute>& RecomputeLevels() {
  static const std::vector<Recompute> levels = {
      {}, {LayerPart::kMlpUp}, {LayerPart::kAttention, LayerPart::kMlpUp}, {LayerPart::kLayer}};
  return levels;
}

std::vector<std::int64_t> PowersOfTwo(std::int64_t most) {
  std::vector<std::int64_t> powers;
  for (std::int64_t power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

std::vector<std::int64_t> DivisorsOf(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t i = 1; i <= number; ++i) {
    if (number % i == 0) divisors.push_back(i);
  }
  return divisors;
}

/// The numbers of stages with a smaller largest stage than any fewer have.
std::vector<int> StageCounts(std::int64_t layers, std::int64_t most) {
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

}  // namespace

struct SearchSpace::Parts {
  Parts(const Config& base, const DeviceModel& model, const SearchLimits& most)
      : config(base), device(model), limits(most), pipelines(device) {
    sink = config.Sink().name;
    global_batch = config.global_batch();
    for (const ModuleConfig& module : config.modules) {
      if (!module.model->computes()) {
        throw LayoutError("module " + module.name +
                          " states its times, which are the same in every layout; expected modules "
                          "that compute");
      }
      if (module.name != sink) encoders.push_back(module.name);
    }
    for (const EdgeConfig& edge : config.edges) {
      if (edge.to == sink) continue;
      throw LayoutError("edge " + edge.from + ">" + edge.to +
                        ": a plan is made for modules that feed \"" + sink + "\" directly");
    }
    constexpr std::size_t kMostEncoders = 8;
    if (encoders.size() > kMostEncoders) {
      throw LayoutError("a plan is made for at most 8 encoders, got " +
                        std::to_string(encoders.size()));
    }
    most_bytes = device.memory_bytes > 0.0 ? device.memory_bytes * (1.0 - limits.reserve)
                                           : std::numeric_limits<double>::infinity();
    AddSinks();
  }

  /// The configuration with the module's layers divided in one way.
  Config With(const std::string& module, const Layout& layout, const Recompute& recompute,
              unsigned inlined) const {
    Config with = config;
    for (ModuleConfig& each : with.modules) {
      each.inline_in.reset();
      if (each.name == module) {
        each.layout = layout;
        each.layout.pp = each.layout.dp = 1;
        each.recompute = recompute;
        each.layers_per_stage.clear();
        each.chunks = 1;
      }
    }
    for (std::size_t i = 0; i < encoders.size(); ++i) {
      if ((inlined >> i & 1U) == 0U) continue;
      for (ModuleConfig& each : with.modules) {
        if (each.name == encoders[i]) each.inline_in = sink;
      }
    }
    return with;
  }

  void AddSinks() {
    const ModuleConfig& own = FindModule(config, sink);
    const std::int64_t layers = own.model->split_layers() ? own.model->split_layers()->number : 1;
    const std::int64_t context = own.model->text() ? own.model->text()->context : 1;
    constexpr std::int64_t kFewestTokens = 256;  // of a rank along cp
    for (const std::int64_t tp :
         PowersOfTwo(std::min(device.topology.devices_per_node, limits.ranks))) {
      if (!own.model->AllowsTp(static_cast<int>(tp))) continue;
      for (const std::int64_t cp : PowersOfTwo(own.model->most_context_parts())) {
        if (cp > 1 && context / cp < kFewestTokens) break;
        for (unsigned inlined = 0; inlined < 1U << encoders.size(); ++inlined) {
          if (!MayInline(inlined, static_cast<int>(tp))) continue;
          for (const std::int64_t samples : PowersOfTwo(64)) {
            if (global_batch % samples != 0) break;
            Layout layout = own.layout;
            layout.tp = static_cast<int>(tp);
            layout.cp = static_cast<int>(cp);
            AddSinksOf(layout, samples, inlined, layers);
          }
        }
      }
    }
  }

  bool MayInline(unsigned inlined, int tp) const {
    for (std::size_t i = 0; i < encoders.size(); ++i) {
      const ModuleConfig& encoder = FindModule(config, encoders[i]);
      const bool here = (inlined >> i & 1U) != 0U;
      if (here && !encoder.model->AllowsTp(tp)) return false;
    }
    return true;
  }

  /// Adds all ways to cut layers that are divided in one way into stages and replicas.
  void AddSinksOf(const Layout& divided, std::int64_t samples, unsigned inlined,
                  std::int64_t layers) {
    std::vector<std::pair<Config, ModuleTable>> tables;
    for (const Recompute& level : RecomputeLevels()) {
      Config with = With(sink, divided, level, inlined);
      const std::tuple key(divided.tp, divided.ep, inlined);
      const auto like = parameters.find(key);
      ModuleTable table(with, sink, samples, device,
                        like == parameters.end() ? nullptr : &like->second);
      if (like == parameters.end()) parameters.emplace(key, table);
      tables.emplace_back(std::move(with), std::move(table));
    }
    double least_s = std::numeric_limits<double>::infinity();
    const auto most_stages =
        std::min<std::int64_t>(std::max<std::int64_t>(layers, 1),
                               limits.ranks / (static_cast<std::int64_t>(divided.tp) * divided.cp));
    for (int pp = 1; pp <= most_stages; ++pp) {
      const double largest_s = LargestStage(tables.front(), pp);
      if (largest_s >= least_s * (1.0 - 1e-9)) continue;
      least_s = largest_s;
      for (const int chunks : {1, 2, 4}) {
        if (std::int64_t{pp} * chunks > layers || (chunks > 1 && pp == 1)) continue;
        for (std::size_t level = 0; level < tables.size(); ++level) {
          auto& [with, table] = tables[level];
          for (ModuleConfig& module : with.modules) {
            if (module.name != sink) continue;
            module.layout = divided;
            module.layout.pp = pp;
            module.chunks = chunks;
            AddReplicas(with, module, SumsOf(table, SizesOf(module), RowBytes(with)), samples,
                        inlined, level);
          }
        }
      }
    }
  }

  /// The passes of the largest of `pp` stages.
  double LargestStage(std::pair<Config, ModuleTable>& of, int pp) {
    ModuleConfig& own = *std::ranges::find(of.first.modules, sink, &ModuleConfig::name);
    own.layout.pp = pp;
    own.chunks = 1;
    double largest_s = 0.0;
    for (const StageSums& stage : SumsOf(of.second, SizesOf(own), 1.0)) {
      largest_s = std::max(largest_s, stage.pass_s);
    }
    return largest_s;
  }

  /// The layers of each stage. They depend on the number of stages alone.
  const std::vector<std::int64_t>& SizesOf(const ModuleConfig& module) {
    auto [found, is_new] = splits.try_emplace({module.name, module.num_stages()});
    if (is_new) {
      for (const Interval& layers : SplitLayers(module)) found->second.push_back(layers.size());
    }
    return found->second;
  }

  void AddReplicas(const Config& with, ModuleConfig module, const std::vector<StageSums>& stages,
                   std::int64_t samples, unsigned inlined, std::size_t level) {
    const std::int64_t most =
        limits.ranks / (module.layout.tp * module.layout.cp * module.layout.pp);
    auto [divisors, is_new] = batch_divisors.try_emplace(samples);
    if (is_new) divisors->second = DivisorsOf(global_batch / samples);
    for (const std::int64_t dp : divisors->second) {
      if (dp > most) break;
      module.layout.dp = static_cast<int>(dp);
      if (!IsLegal(with, module)) continue;
      const std::int64_t microbatches = global_batch / samples / dp;
      for (const ScheduleKind kind : KindsFor(module, microbatches)) {
        const Pipeline pipeline = pipelines.Of(with, module, stages, {kind, samples, microbatches});
        if (pipeline.bytes > most_bytes) continue;
        points.push_back({module.layout, samples, microbatches, kind, module.chunks,
                          RecomputeLevels()[level], inlined});
        problem.sinks.push_back({.own = {.ranks = module.layout.num_ranks(),
                                         .first_s = pipeline.first_s,
                                         .period_s = pipeline.period_s,
                                         .fixed_s = device.step_s,
                                         .after_s = pipeline.update_s},
                                 .units = microbatches,
                                 .free_bytes = most_bytes - pipeline.bytes,
                                 .group = points.size() - 1});
      }
    }
  }

  /// Whether the ranks of a stage can be divided among experts and optimizer instances.
  static bool IsLegal(const Config& with, const ModuleConfig& module) {
    const Layout& layout = module.layout;
    if (!WhyNoExperts(layout).empty() || layout.stage_ranks() % layout.expert_group() != 0) {
      return false;
    }
    const std::int64_t instances = module.optimizer.instances.value_or(with.optimizer.instances);
    return layout.num_holders() % instances == 0;
  }

  static std::vector<ScheduleKind> KindsFor(const ModuleConfig& module, std::int64_t microbatches) {
    if (module.chunks > 1) {
      if (microbatches % module.layout.pp != 0) return {};
      return {ScheduleKind::kInterleaved};
    }
    if (module.layout.pp == 1 || module.keeps_parameters()) return {ScheduleKind::k1F1B};
    return {ScheduleKind::k1F1B, ScheduleKind::kZbH1};
  }

  /// The tables of an encoder for units of one and of two samples, between which all is linear.
  struct EncoderTables {
    Config with;
    ModuleTable one;
    ModuleTable two;
    std::map<int, std::pair<std::vector<StageSums>, std::vector<StageSums>>> cut;
  };

  EncoderTables& TablesOf(std::size_t encoder, int tp, std::size_t level) {
    const std::tuple key(encoder, tp, level);
    const auto found = encoder_tables.find(key);
    if (found != encoder_tables.end()) return found->second;
    Layout layout;
    layout.tp = tp;
    Config with = With(encoders[encoder], layout, RecomputeLevels()[level], 0);
    ModuleTable one(with, encoders[encoder], 1, device);
    ModuleTable two(with, encoders[encoder], 2, device, &one);
    return encoder_tables
        .emplace(key, EncoderTables{std::move(with), std::move(one), std::move(two), {}})
        .first->second;
  }

  /// The pipeline of an encoder whose replicas have `samples` of each of `units` units.
  Pipeline EncoderPipeline(std::size_t encoder, const Layout& layout, std::size_t level,
                           std::int64_t samples, std::int64_t units, std::int64_t more) {
    EncoderTables& tables = TablesOf(encoder, layout.tp, level);
    const auto own = std::ranges::find(tables.with.modules, encoders[encoder], &ModuleConfig::name);
    own->layout = layout;
    auto cut = tables.cut.find(layout.pp);
    if (cut == tables.cut.end()) {
      const std::vector<std::int64_t>& sizes = SizesOf(*own);
      const double row_bytes = RowBytes(tables.with);
      cut = tables.cut
                .emplace(layout.pp, std::pair(SumsOf(tables.one, sizes, row_bytes),
                                              SumsOf(tables.two, sizes, row_bytes)))
                .first;
    }
    std::vector<StageSums> stages;
    for (std::size_t i = 0; i < cut->second.first.size(); ++i) {
      stages.push_back(
          Between(cut->second.first[i], cut->second.second[i], static_cast<double>(samples - 1)));
    }
    return pipelines.Of(tables.with, *own, stages, {ScheduleKind::k1F1B, samples, units, more});
  }

  /// The options of every encoder, for one way to run the sink.
  std::vector<std::vector<RunOption>> OptionsOf(std::size_t index) {
    const SinkPoint& point = points[index];
    std::vector<std::vector<RunOption>> options;
    auto& own_points = encoder_points[index];
    for (std::size_t encoder = 0; encoder < encoders.size(); ++encoder) {
      auto& list = options.emplace_back();
      auto& its_points = own_points.emplace_back();
      if ((point.inlined >> encoder & 1U) != 0U) {
        list.push_back({});
        its_points.push_back({});
        continue;
      }
      const ModuleConfig& module = FindModule(config, encoders[encoder]);
      for (const std::int64_t tp : PowersOfTwo(device.topology.devices_per_node)) {
        if (!module.model->AllowsTp(static_cast<int>(tp))) continue;
        AddColocated(point, encoder, static_cast<int>(tp), list, its_points);
        AddDisjoint(point, encoder, static_cast<int>(tp), list, its_points);
      }
    }
    return options;
  }

  bool IsLegalEncoder(std::size_t encoder, const Layout& layout) const {
    ModuleConfig module = FindModule(config, encoders[encoder]);
    module.layout = layout;
    return IsLegal(config, module);
  }

  /// An encoder that encodes the whole step before the sink's pipeline, and runs backward behind it.
  void AddColocated(const SinkPoint& point, std::size_t encoder, int tp,
                    std::vector<RunOption>& list, std::vector<EncoderPoint>& its_points) {
    const int ranks = point.layout.num_ranks();
    if (ranks % tp != 0) return;
    Layout layout;
    layout.tp = tp;
    layout.dp = ranks / tp;
    if (!IsLegalEncoder(encoder, layout)) return;
    const std::int64_t samples = (global_batch + layout.dp - 1) / layout.dp;
    for (std::size_t level = 0; level < RecomputeLevels().size(); ++level) {
      const Pipeline pipeline = EncoderPipeline(encoder, layout, level, samples, 1, 0);
      list.push_back({.ranks = 0,
                      .memory_bytes = pipeline.bytes,
                      .fixed_s = pipeline.first_s + pipeline.update_s});
      its_points.push_back({Placement::kColocated, layout, RecomputeLevels()[level]});
    }
  }

  /// An encoder on its own ranks: it encodes a microbatch while the sink computes earlier ones.
  void AddDisjoint(const SinkPoint& point, std::size_t encoder, int tp,
                   std::vector<RunOption>& list, std::vector<EncoderPoint>& its_points) {
    const int left = limits.ranks - point.layout.num_ranks();
    const std::int64_t batch = point.micro_batch_size * point.layout.dp;
    const ModuleConfig& module = FindModule(config, encoders[encoder]);
    const std::int64_t layers =
        module.model->split_layers() ? module.model->split_layers()->number : 1;
    const std::int64_t in_flight = std::int64_t{point.layout.pp} * point.chunks;
    for (const int pp : StageCounts(layers, std::min(left / tp, 8))) {
      for (const std::int64_t dp : DivisorsOf(batch)) {
        if (std::int64_t{tp} * pp * dp > left) break;
        Layout layout;
        layout.tp = tp;
        layout.pp = pp;
        layout.dp = static_cast<int>(dp);
        if (!IsLegalEncoder(encoder, layout)) continue;
        for (std::size_t level = 0; level < RecomputeLevels().size(); ++level) {
          const Pipeline pipeline =
              EncoderPipeline(encoder, layout, level, batch / dp, point.microbatches, in_flight);
          if (pipeline.bytes > most_bytes) continue;
          list.push_back({.ranks = layout.num_ranks(),
                          .first_s = pipeline.first_s,
                          .period_s = pipeline.period_s,
                          .after_s = pipeline.update_s});
          its_points.push_back({Placement::kDisjoint, layout, RecomputeLevels()[level]});
          break;
        }
      }
    }
  }

  /// The fewest nodes with as many ranks each.
  int NodesFor(int ranks) const {
    const int most = device.topology.devices_per_node;
    int nodes = (ranks + most - 1) / most;
    while (ranks % nodes != 0) ++nodes;
    return nodes;
  }

  Config config;
  DeviceModel device;
  SearchLimits limits;
  std::string sink;
  std::vector<std::string> encoders;
  std::int64_t global_batch = 0;
  double most_bytes = 0.0;
  std::map<std::int64_t, std::vector<std::int64_t>> batch_divisors;  ///< by samples of a replica
  std::vector<SinkPoint> points;                                     ///< by sink of the problem
  ChoiceProblem problem;
  std::map<std::tuple<std::size_t, int, std::size_t>, EncoderTables> encoder_tables;
  std::map<std::pair<std::string, int>, std::vector<std::int64_t>> splits;
  PipelineModel pipelines;
  std::map<std::tuple<int, int, unsigned>, ModuleTable> parameters;  ///< of the sink
  std::map<std::size_t, std::vector<std::vector<EncoderPoint>>> encoder_points;
};

SearchSpace::SearchSpace(const Config& config, const DeviceModel& device,
                         const SearchLimits& limits)
    : parts_(std::make_unique<Parts>(config, device, limits)) {
  parts_->problem.max_ranks = limits.ranks;
  parts_->problem.options_of = [parts = parts_.get()](std::size_t group) {
    return parts->OptionsOf(group);
  };
}

SearchSpace::~SearchSpace() = default;

std::size_t SearchSpace::num_sinks() const { return parts_->points.size(); }

std::vector<PlannedJob> SearchSpace::Best(double within) const {
  std::vector<PlannedJob> jobs;
  parts_->encoder_points.clear();
  for (const Choice& choice : BestChoices(parts_->problem, within, 1.001)) {
    PlannedJob job{parts_->points[choice.sink],
                   {},
                   choice.ranks,
                   parts_->NodesFor(choice.ranks),
                   choice.step_s};
    const auto& points = parts_->encoder_points.at(choice.sink);
    for (std::size_t i = 0; i < choice.options.size(); ++i) {
      job.encoders.push_back(points[i][choice.options[i]]);
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace troupe
