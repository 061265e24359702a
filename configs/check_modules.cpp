#include <algorithm>
#include <numeric>

#include "configs/checks.hpp"
#include "configs/toml_value.hpp"

namespace troupe {

/// The byte tokenizer's own tokens: 256 bytes, begin, end, padding.
static constexpr std::int64_t kByteTokens = 259;

static Named At(const ModuleConfig& module, const std::string& key, std::int64_t value) {
  return {KeyOf(module, key), value};
}

static Named TensorParallel(const Config& config, const ModuleConfig& module) {
  const ModuleConfig* host = module.inline_in ? config.Find(*module.inline_in) : nullptr;
  const ModuleConfig& placed = host == nullptr ? module : *host;
  return At(placed, "layout.tp", placed.layout.tp);
}

/// Stages are made of layers: each of them needs one.
static void CheckStages(const Config& config, const ModuleConfig& module, std::int64_t layers,
                        Report& report) {
  const std::string key = KeyOf(module, "layers_per_stage");
  const std::string pp_key = KeyOf(module, "layout.pp");
  const bool known = report.Good({key, pp_key, KeyOf(module, "layout"), KeyOf(module, "layers"),
                                  KeyOf(module, "feature_layer")});
  if (!known || module.inline_in) return;
  const int pp = LayoutOf(config, module).pp;
  const int stages = pp * module.chunks;
  const std::string built = module.kind == ModuleKind::kVit ? " up to feature_layer" : "";
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

static void CheckFeatureLayer(const ModuleConfig& module, Report& report) {
  const std::string key = KeyOf(module, "feature_layer");
  if (!report.Good({key, KeyOf(module, "layers")})) return;
  const std::int64_t layers = module.vit.layers;
  const std::int64_t feature = module.vit.feature_layer;
  if (feature >= -layers - 1 && feature <= layers) return;
  report.Add(key, "expected " + std::to_string(-layers - 1) + " to " + std::to_string(layers) +
                      " (the embedding and " + std::to_string(layers) + " layers), got " +
                      std::to_string(feature));
}

static void CheckVit(const Config& config, const ModuleConfig& module, Report& report) {
  const VitConfig& vit = module.vit;
  const Named heads = At(module, "heads", vit.heads);
  const Named tp = TensorParallel(config, module);
  ExpectMultiple(At(module, "image_size", vit.image_size), At(module, "patch_size", vit.patch_size),
                 report);
  ExpectMultiple(At(module, "hidden", vit.hidden), heads, report);
  ExpectMultiple(heads, tp, report);
  ExpectMultiple(At(module, "mlp_hidden", vit.mlp_hidden), tp, report);
  CheckFeatureLayer(module, report);
  CheckStages(config, module, vit.built_layers(), report);
  if (!module.input && report.Good({KeyOf(module, "input")})) {
    report.Add(KeyOf(module, "input"),
               "missing, expected { field = \"...\", placeholder = \"...\" }, since there are "
               "several encoders");
  }
}

static void CheckHeads(const Config& config, const ModuleConfig& module, Report& report) {
  const LlamaConfig& llama = module.llama;
  const Named heads = At(module, "heads", llama.heads);
  const Named kv_heads = At(module, "kv_heads", llama.kv_heads);
  const Named hidden = At(module, "hidden", llama.hidden);
  const Named tp = TensorParallel(config, module);
  ExpectMultiple(hidden, heads, report);
  ExpectMultiple(heads, tp, report);
  ExpectMultiple(heads, kv_heads, report);
  if (!report.Good({heads.key, kv_heads.key, hidden.key, tp.key})) return;
  if (llama.hidden / llama.heads % 2 != 0) {
    report.Add(hidden.key, "expected an even number for each of the " +
                               std::to_string(heads.value) +
                               " heads, which rotary positions turn "
                               "in pairs, got " +
                               std::to_string(llama.hidden / llama.heads));
  }
  if (kv_heads.value % tp.value != 0 && tp.value % kv_heads.value != 0) {
    report.Add(kv_heads.key, "expected a multiple or a divisor of " + tp.key + " = " +
                                 std::to_string(tp.value) + ", got " +
                                 std::to_string(kv_heads.value));
  }
}

static void CheckVocab(const Config& config, const ModuleConfig& module, Report& report) {
  const Named vocab = At(module, "vocab", module.llama.vocab);
  const Named tp = TensorParallel(config, module);
  if (!report.Good({vocab.key, tp.key})) return;
  const auto encoders = std::ranges::count(config.modules, ModuleKind::kVit, &ModuleConfig::kind);
  const bool all_known = std::ranges::all_of(
      config.modules, [&](const auto& other) { return report.Good({KeyOf(other, "kind")}); });
  if (vocab.value < tp.value) {
    report.Add(vocab.key, "expected at least " + tp.key + " = " + std::to_string(tp.value) +
                              ", got " + std::to_string(vocab.value));
  } else if (config.data.tokenizer == "bytes" && all_known &&
             vocab.value < kByteTokens + encoders) {
    report.Add(vocab.key, "expected at least " + std::to_string(kByteTokens + encoders) +
                              " (259 of the bytes tokenizer, then a placeholder per encoder), "
                              "got " +
                              std::to_string(vocab.value));
  }
}

/// An image that does not fit would be cut, and with it every sample that has one.
static void CheckContext(const Config& config, const ModuleConfig& module, Report& report) {
  const std::string key = KeyOf(module, "context");
  for (const auto& edge : config.edges) {
    const ModuleConfig* source = config.Find(edge.from);
    if (edge.to != module.name || source == nullptr || source->kind != ModuleKind::kVit) continue;
    const bool known = report.Good(
        {key, KeyOf(*source, "image_size"), KeyOf(*source, "kind"), KeyOf(*source, "patch_size")});
    if (!known || module.llama.context > source->vit.rows_per_image()) continue;
    report.Add(key, "expected more tokens than the " +
                        std::to_string(source->vit.rows_per_image()) + " rows of one image of \"" +
                        source->name + "\", got " + std::to_string(module.llama.context));
  }
}

static void CheckLlama(const Config& config, const ModuleConfig& module, Report& report) {
  CheckHeads(config, module, report);
  ExpectMultiple(At(module, "mlp_hidden", module.llama.mlp_hidden), TensorParallel(config, module),
                 report);
  CheckStages(config, module, module.llama.layers, report);
  CheckVocab(config, module, report);
  CheckContext(config, module, report);
}

/// A word that is part of another one could not be told from it in the text.
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

static void CheckRates(const Config& config, const ModuleConfig& module, Report& report) {
  const OptimizerOverride& own = module.optimizer;
  const std::string key = KeyOf(
      module, own.min_learning_rate ? "optimizer.min_learning_rate" : "optimizer.learning_rate");
  const double low = own.min_learning_rate.value_or(config.optimizer.min_learning_rate);
  const double high = own.learning_rate.value_or(config.optimizer.learning_rate);
  const bool given = own.min_learning_rate || own.learning_rate;
  const bool known = report.Good({key, "optimizer.learning_rate", "optimizer.min_learning_rate",
                                  KeyOf(module, "optimizer.learning_rate")});
  if (!given || !known || low <= high) return;
  report.Add(key, "expected min_learning_rate " + NumberText(low) +
                      " to be at most learning_rate " + NumberText(high));
}

void CheckModules(const Config& config, Report& report) {
  for (const auto& module : config.modules) {
    CheckRates(config, module, report);
    if (!report.Good({KeyOf(module, "kind")})) continue;
    if (module.kind == ModuleKind::kVit) CheckVit(config, module, report);
    if (module.kind == ModuleKind::kLlama) CheckLlama(config, module, report);
  }
  CheckInputs(config, report);
}

}  // namespace troupe
