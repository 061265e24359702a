#include <algorithm>
#include <map>
#include <numeric>

#include "configs/checks.hpp"
#include "configs/schema.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// A stage consists of layers and needs at least one.
static void CheckStages(const ModuleConfig& module, Report& report) {
  if (!module.model->split_layers()) return;
  const std::string key = KeyOf(module, "layers_per_stage");
  const std::string pp_key = KeyOf(module, "layout.pp");
  const bool known = report.Good({key, pp_key, KeyOf(module, "layout"), KeyOf(module, "layers"),
                                  KeyOf(module, "feature_layer")});
  if (!known || module.inline_in) return;
  const int stages = module.num_stages();
  const auto [layers, which] = *module.model->split_layers();
  const std::string built = which.empty() ? "" : " " + std::string(which);
  const std::string have = std::to_string(layers) + (layers == 1 ? " layer" : " layers") + built;
  const auto& list = module.layers_per_stage;
  if (stages > 1 && stages > layers) {
    const std::string of =
        module.chunks == 1 ? "" : " (" + std::to_string(module.chunks) + " on each rank)";
    report.Add(pp_key, "expected at most one stage for each layer, got " + std::to_string(stages) +
                           " stages" + of + " for " + have);
  } else if (!list.empty() && std::ssize(list) != stages) {
    report.Add(key, "expected one entry for each of the " + std::to_string(stages) +
                        " stages, got " + std::to_string(list.size()));
  } else if (!list.empty()) {
    const auto sum = std::accumulate(list.begin(), list.end(), std::int64_t{0});
    if (sum != layers) {
      report.Add(key, "expected " + have + " in all, got " + std::to_string(sum));
    }
  }
}

static void CheckOffloadedLayers(const ModuleConfig& module, Report& report) {
  if (!module.model->split_layers()) return;
  const std::string key = KeyOf(module, "offload_activations");
  if (!report.Good({key, KeyOf(module, "layers"), KeyOf(module, "feature_layer")})) return;
  const std::int64_t layers = module.model->split_layers()->number;
  for (const std::int64_t layer : module.offload_activations.layers) {
    if (layer < layers) continue;
    report.Add(key, "expected layers from 0 to " + std::to_string(layers - 1) + ", got " +
                        std::to_string(layer));
    return;
  }
}

namespace {

class ConfigModuleCheck : public ModuleCheck {
 public:
  ConfigModuleCheck(const Config& config, const ModuleConfig& module, Report& report)
      : config_(config), module_(module), report_(report) {}

  std::string KeyOf(const std::string& name) const override { return troupe::KeyOf(module_, name); }
  bool Good(std::initializer_list<std::string> keys) const override { return report_.Good(keys); }
  void Add(const std::string& key, const std::string& text) override { report_.Add(key, text); }
  void ExpectMultiple(const Named& number, const Named& divisor) override {
    troupe::ExpectMultiple(number, divisor, report_);
  }
  Named tp() const override {
    const ModuleConfig& placed = HostOf(config_, module_);
    return {troupe::KeyOf(placed, "layout.tp"), placed.layout.tp};
  }
  Named etp() const override { return {troupe::KeyOf(module_, "layout.etp"), module_.layout.etp}; }
  std::vector<Source> sources() const override {
    std::vector<Source> sources;
    for (const auto& edge : config_.edges) {
      const ModuleConfig* source = config_.Find(edge.from);
      if (edge.to != module_.name || source == nullptr) continue;
      sources.push_back({source->name, &*source->model, HasGoodKeys(*source)});
    }
    return sources;
  }
  std::optional<std::int64_t> num_placeholders() const override {
    std::int64_t count = 0;
    for (const auto& other : config_.modules) {
      if (!report_.Good({troupe::KeyOf(other, "kind")})) return std::nullopt;
      if (other.model->field() != nullptr) ++count;
    }
    return count;
  }
  bool reads_bytes() const override { return config_.data.tokenizer == "bytes"; }

 private:
  bool HasGoodKeys(const ModuleConfig& module) const {
    const KindSet kind = Only(module.model.kind());
    return report_.Good({troupe::KeyOf(module, "kind")}) &&
           std::ranges::all_of(Keys(), [&](const KeySpec& key) {
             return key.kinds != kind ||
                    report_.Good({troupe::KeyOf(module, std::string(key.name))});
           });
  }

  const Config& config_;
  const ModuleConfig& module_;
  Report& report_;
};

}  // namespace

/// The linear layers of a module that can have adapters, and the smaller width of each.
static std::map<LinearRole, std::int64_t> WidthsOf(const ModelConfig& model) {
  std::vector<ParameterSpec> specs;
  ParameterList list(specs, "", false);
  model.AddParameters({.layers = {0, 1}, .first = false, .last = false}, list);
  std::map<LinearRole, std::int64_t> widths;
  for (const ParameterSpec& spec : specs) {
    if (spec.role) widths[*spec.role] = std::ranges::min(spec.shape);
  }
  return widths;
}

static std::string WordsOf(const LinearRoles& roles) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kLinearRoleWords.size(); ++i) {
    if (roles.HasNumber(i)) words.push_back(Quoted(kLinearRoleWords[i]));
  }
  return words.empty() ? "none" : Listed(words, ", ");
}

static void CheckAdapters(const ModuleConfig& module, Report& report) {
  if (!module.lora) return;
  report.Expect(
      !module.frozen, {KeyOf(module, "frozen")},
      "expected false beside `lora`, which trains adapters and nothing else of the module");
  const std::string key = KeyOf(module, "lora.linears");
  if (!report.Good({key, KeyOf(module, "kind")})) return;
  const std::map<LinearRole, std::int64_t> widths = WidthsOf(*module.model);
  LinearRoles has;
  const LinearRoles& asked = module.lora->linears;
  for (const auto& [role, width] : widths) {
    has.Add(role);
    if (!asked.Has(role)) continue;
    report.Expect(module.lora->rank <= width, {KeyOf(module, "lora.rank"), key},
                  "expected at most " + std::to_string(width) + ", the width of \"" +
                      kLinearRoleWords[static_cast<std::size_t>(role)] + "\", got " +
                      std::to_string(module.lora->rank));
  }
  bool all = asked != LinearRoles();
  for (std::size_t i = 0; i < kLinearRoleWords.size(); ++i) {
    all = all && (!asked.HasNumber(i) || has.HasNumber(i));
  }
  if (all) return;
  report.Add(key, "expected some of " + WordsOf(has) + ", the linear layers of a \"" +
                      std::string(module.model.kind().word) + "\", got " + WordsOf(asked));
}

/// If several modules read a field, each must state which.
static void CheckHasInput(const ModuleConfig& module, Report& report) {
  report.Expect(module.model->field() == nullptr || module.input, {KeyOf(module, "input")},
                "missing, expected { field = \"...\", placeholder = \"...\" }, since there are "
                "several encoders");
}

/// A placeholder that is part of another one could not be recognized in the text.
static void CheckInputs(const Config& config, Report& report) {
  for (const auto& module : config.modules) {
    if (!module.input) continue;
    const std::string key = KeyOf(module, "input.placeholder");
    const std::string& word = module.input->placeholder;
    const bool blank = word.empty() || word.find_first_of(" \t\r\n") != std::string::npos;
    if (blank) report.Add(key, "expected a word without blanks, got " + Quoted(word));
    if (module.input->field.empty()) {
      report.Add(KeyOf(module, "input.field"), "expected a field of the samples, got \"\"");
    }
    for (const auto& earlier : config.modules) {
      if (&earlier == &module) break;
      if (blank || !earlier.input || earlier.input->placeholder.empty()) continue;
      const std::string& other = earlier.input->placeholder;
      const bool part =
          word.find(other) != std::string::npos || other.find(word) != std::string::npos;
      if (!part) continue;
      report.Add(key, "expected a word that neither contains nor is part of " + Quoted(other) +
                          " of modules." + earlier.name + ", got " + Quoted(word));
    }
  }
}

void CheckOwnRates(const OptimizerOverride& own, const OptimizerOverride& inherited,
                   const std::string& table, const Config& config, Report& report) {
  const auto value = [](std::optional<double> first, std::optional<double> second, double last) {
    return first ? *first : second.value_or(last);
  };
  const OptimizerConfig& all = config.optimizer;
  const std::string low_key = table + ".min_learning_rate";
  const std::string high_key = table + ".learning_rate";
  const double low =
      value(own.min_learning_rate, inherited.min_learning_rate, all.min_learning_rate);
  const double high = value(own.learning_rate, inherited.learning_rate, all.learning_rate);
  const bool given = own.min_learning_rate || own.learning_rate;
  report.Expect(!given || low <= high,
                {own.min_learning_rate ? low_key : high_key, "optimizer.learning_rate",
                 "optimizer.min_learning_rate", high_key},
                "expected min_learning_rate " + NumberText(low) + " to be at most learning_rate " +
                    NumberText(high));
}

/// Checks that the instances of a module's optimizer divide its replicas.
static void CheckInstances(const Config& config, const ModuleConfig& module, Report& report) {
  const OptimizerOverride& own = module.optimizer;
  if (module.inline_in) {
    report.Expect(!own.shard && !own.instances,
                  {KeyOf(module, own.shard ? "optimizer.shard" : "optimizer.instances")},
                  "expected no value, as the module shares the ranks of " +
                      Quoted(*module.inline_in) + ", whose replicas divide the state");
    return;
  }
  const bool shards = own.shard.value_or(config.optimizer.shard) == OptimizerShard::kData;
  report.Expect(
      shards || own.instances.value_or(1) == 1, {KeyOf(module, "optimizer.instances")},
      "expected 1 without shard = \"data\", got " + std::to_string(own.instances.value_or(1)));
  if (!shards || !module.model->computes()) return;
  const std::int64_t instances = own.instances.value_or(config.optimizer.instances);
  const std::string own_key = KeyOf(module, "optimizer.instances");
  const bool cuts = module.layout.cp > 1;
  report.Expect(module.layout.num_holders() % instances == 0,
                {own.instances ? own_key : "optimizer.instances", KeyOf(module, "layout.dp"),
                 KeyOf(module, "layout.cp")},
                "expected a divisor of " + KeyOf(module, cuts ? "layout.dp * cp" : "layout.dp") +
                    " = " + std::to_string(module.layout.num_holders()) + ", got " +
                    std::to_string(instances) +
                    (own.instances ? "" : "; " + own_key + " may state another number"));
}

/// Checks that a number of instances has a module that divides its state.
static void CheckSomeShards(const Config& config, Report& report) {
  const auto shards = [](const ModuleConfig& module) {
    return module.optimizer.shard == OptimizerShard::kData;
  };
  report.Expect(
      config.optimizer.instances == 1 || config.optimizer.shard == OptimizerShard::kData ||
          std::ranges::any_of(config.modules, shards),
      {"optimizer.instances"},
      "expected 1 without shard = \"data\", got " + std::to_string(config.optimizer.instances));
}

/// Checks that its kind can cut its rows over cp.
static void CheckContext(const ModuleConfig& module, Report& report) {
  const std::string key = KeyOf(module, "layout.cp");
  if (module.inline_in || module.layout.cp == 1 || !report.Good({key})) return;
  const std::int64_t most = module.model->most_context_parts();
  const std::string got = ", got " + std::to_string(module.layout.cp);
  const auto field = module.model->field();
  const std::string one = field ? std::string(field->word()) : "sample";
  report.Expect(module.layout.cp <= most, {key},
                most == 1 ? "expected 1, since a \"" + std::string(module.model.kind().word) +
                                "\" of these sizes has nothing to cut over cp" + got
                          : "expected at most " + std::to_string(most) + ", the parts that one " +
                                one + " can be cut into" + got);
}

void CheckModules(const Config& config, Report& report) {
  CheckSomeShards(config, report);
  for (const auto& module : config.modules) {
    CheckOwnRates(module.optimizer, {}, KeyOf(module, "optimizer"), config, report);
    CheckInstances(config, module, report);
    if (!report.Good({KeyOf(module, "kind")})) continue;
    ConfigModuleCheck check(config, module, report);
    module.model->Check(check);
    CheckStages(module, report);
    CheckOffloadedLayers(module, report);
    CheckContext(module, report);
    CheckHasInput(module, report);
    CheckAdapters(module, report);
  }
  CheckInputs(config, report);
}

}  // namespace troupe
