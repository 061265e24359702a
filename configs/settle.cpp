#include <algorithm>
#include <string>

#include "configs/checks.hpp"
#include "configs/steps.hpp"

namespace troupe {

void FillNodes(ClusterConfig& cluster) {
  if (cluster.nodes.empty()) cluster.nodes = {{DefaultNodeName(0), "", 0}};
  const int count = static_cast<int>(cluster.nodes.size());
  const bool unfilled = std::ranges::count(cluster.nodes, 0, &ClusterNode::devices) == count;
  if (!unfilled || cluster.ranks % count != 0) return;
  for (auto& node : cluster.nodes) node.devices = cluster.ranks / count;
}

void FillDefaults(Config& config, const Report& report) {
  const auto reads_field = [](const ModuleConfig& module) {
    return module.model->field() != nullptr;
  };
  const auto readers = std::ranges::count_if(config.modules, reads_field);
  for (auto& module : config.modules) {
    const auto stated = [&](const char* key) { return report.Knows(KeyOf(module, key)); };
    module.model->FillDefaults(stated);
    if (readers != 1 || !reads_field(module) || stated("input")) continue;
    const std::string word(module.model->field()->word());
    module.input = InputConfig{word, "<" + word + ">"};
  }
}

/// The one fit that has grids gets LLaVA-NeXT's if none are stated.
static void SettleGrids(const ModuleConfig& module, ImageRecipe& recipe, Report& report) {
  const std::string key = KeyOf(module, "image_grids");
  if (!report.Good({key, KeyOf(module, "image_fit"), "data.image_fit"})) return;
  if (recipe.has_tiles()) {
    if (recipe.grids.empty()) recipe.grids = kUsualGrids;
  } else if (!recipe.grids.empty()) {
    report.Add(key, "expected none, since image_fit = " +
                        Quoted(kImageFitWords[static_cast<std::size_t>(recipe.fit)]) +
                        " cuts no tiles");
  }
}

/// Sets the fit of every module that reads images to `inputs.image_fit`, if it is stated.
static void SettleFit(Config& config, const ShapingInputs& inputs, Report& report) {
  const std::string all = "data.image_fit";
  if (!inputs.image_fit || !report.Good({all})) return;
  const auto stated = [](const std::string& key, ImageFit fit) {
    return key + " = " + Quoted(kImageFitWords[static_cast<std::size_t>(fit)]);
  };
  for (ModuleConfig& module : config.modules) {
    const std::string key = KeyOf(module, "image_fit");
    ImageRecipe* const recipe = module.model->images();
    if (recipe == nullptr || !report.Good({key})) continue;
    if (!report.Knows(key)) recipe->fit = *inputs.image_fit;
    if (recipe->fit == *inputs.image_fit) continue;
    report.Add(report.Later(key, all), "expected one of " + stated(all, *inputs.image_fit) +
                                           " and " + stated(key, recipe->fit) +
                                           ", or both to agree");
  }
}

void SettleImages(Config& config, const ShapingInputs& inputs, Report& report) {
  SettleFit(config, inputs, report);
  for (ModuleConfig& module : config.modules) {
    if (ImageRecipe* const recipe = module.model->images()) {
      SettleGrids(module, *recipe, report);
    }
  }
}

/// Returns the module that defines the microbatch. Null if the edges leave none, or its layout has
/// errors.
static const ModuleConfig* KnownSink(const Config& config, const Report& report) {
  const ModuleConfig* const sink = config.FindSink();
  if (sink == nullptr) return nullptr;
  const bool good = report.Good({"modules", KeyOf(*sink, "layout"), KeyOf(*sink, "layout.dp")});
  return good ? sink : nullptr;
}

/// "the nearest are 32 and 48".
static std::string NearestMultiples(std::int64_t number, std::int64_t of) {
  const std::int64_t below = number / of * of;
  if (below == 0) return "the nearest is " + std::to_string(of);
  return "the nearest are " + std::to_string(below) + " and " + std::to_string(below + of);
}

void SettleBatch(Config& config, const ShapingInputs& inputs, Report& report) {
  ScheduleConfig& schedule = config.schedule;
  const std::string batch_key = "schedule.global_batch";
  const std::string count_key = "schedule.microbatches";
  if (!report.Knows(batch_key)) return;
  const ModuleConfig* sink = KnownSink(config, report);
  const bool known = report.Good({batch_key, count_key, "schedule.micro_batch_size"});
  if (sink == nullptr || !known) return report.Doubt(count_key);
  const std::int64_t batch = *inputs.global_batch;
  const std::int64_t samples = schedule.micro_batch_size * sink->layout.dp;
  const std::string factors = std::to_string(schedule.micro_batch_size) + " samples * dp " +
                              std::to_string(sink->layout.dp) + " of " + sink->name;
  if (report.Knows(count_key)) {
    const auto product = static_cast<double>(samples) * static_cast<double>(schedule.microbatches);
    if (product == static_cast<double>(batch)) return;
    report.Add(report.Later(batch_key, count_key),
               factors + " * " + std::to_string(schedule.microbatches) +
                   " microbatches are not global_batch = " + std::to_string(batch) +
                   "; expected one of the two keys, or both to agree");
    return report.Doubt(count_key);
  }
  if (batch % samples != 0) {
    report.Add(batch_key, "expected a multiple of " + factors + " = " + std::to_string(samples) +
                              ", got " + std::to_string(batch) + "; " +
                              NearestMultiples(batch, samples));
    return report.Doubt(count_key);
  }
  schedule.microbatches = batch / samples;
  const auto most = static_cast<std::int64_t>(FindKey("schedule", "microbatches")->range.high);
  if (schedule.microbatches <= most) return;
  report.Add(batch_key, "expected at most " + std::to_string(most) + " microbatches, got " +
                            std::to_string(batch) + " / (" + factors +
                            ") = " + std::to_string(schedule.microbatches));
  report.Doubt(count_key);
}

}  // namespace troupe
