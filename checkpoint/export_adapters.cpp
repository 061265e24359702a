#include "checkpoint/export_adapters.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "models/model_folder.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// A folder of adapters while it is planned.
class AdapterFolder {
 public:
  AdapterFolder(const Config& config, const SavedParameters& saved,
                const std::map<std::string, ParameterSpec>& parameters)
      : config_(config), saved_(saved), parameters_(parameters) {}

  /// `names` are those of the module in memory.
  void AddModule(const ModuleConfig& module, const ForeignNames& names) {
    for (const auto& [own, spec] : parameters_) {
      if (spec.part != module.name || spec.adapts.empty()) continue;
      const auto name = [&](std::string_view whole) {
        return SpelledFor(*module.model, NameIn(names, whole.substr(module.name.size() + 1)));
      };
      Add(kBefore + name(own), own);
      const std::string adapted = name(spec.adapts);
      NoteLayer(adapted.substr(0, adapted.rfind('.')), *module.lora);
    }
    if (base_.empty() && module.weights) base_ = HuggingFaceFolder(*module.weights);
  }

  void AddProjector(const EdgeConfig& edge) {
    const std::string part = ProjectorName(edge);
    for (const auto& [own, spec] : parameters_) {
      if (spec.part != part) continue;
      Add(std::string(kBefore) + "model.multi_modal_projector." + own.substr(part.size() + 1), own);
    }
    saves_.push_back("multi_modal_projector");
  }

  ExportedFolder Finish(const std::string& name, const char* task) && {
    nlohmann::ordered_json config = {
        {"peft_type", "LORA"},
        {"task_type", task == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(task)},
        {"base_model_name_or_path",
         base_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(base_)},
        {"r", first_.rank},
        {"lora_alpha", first_.strength()},
        {"lora_dropout", first_.dropout},
        {"bias", "none"},
        {"fan_in_fan_out", false},
        {"inference_mode", true},
        {"init_lora_weights", true},
        {"target_modules", layers_},
        {"rank_pattern", ranks_},
        {"alpha_pattern", alphas_},
        {"modules_to_save",
         saves_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(saves_)}};
    ExportedFolder folder;
    folder.name = name;
    folder.files = {{"adapter_model.safetensors", std::move(tensors_)}};
    folder.texts["adapter_config.json"] = config.dump(2) + "\n";
    return folder;
  }

 private:
  static constexpr const char* kBefore = "base_model.model.";

  void Add(std::string name, const std::string& own) {
    if (!saved_.Has(own)) {
      throw std::runtime_error("parameter " + own + ": expected a saved value, found none");
    }
    tensors_.push_back({.name = std::move(name),
                        .type = WrittenType(config_.run.precision),
                        .shape = parameters_.at(own).shape,
                        .own = own});
  }

  void NoteLayer(const std::string& layer, const LoraConfig& lora) {
    if (!layers_.empty() && layers_.back() == layer) return;  // its other weight
    if (layers_.empty()) first_ = lora;
    layers_.push_back(layer);
    if (lora.rank != first_.rank) ranks_[layer] = lora.rank;
    if (lora.strength() != first_.strength()) alphas_[layer] = lora.strength();
  }

  const Config& config_;
  const SavedParameters& saved_;
  const std::map<std::string, ParameterSpec>& parameters_;
  std::vector<ExportedTensor> tensors_;
  std::string base_;
  LoraConfig first_;
  std::vector<std::string> layers_;
  nlohmann::ordered_json ranks_ = nlohmann::ordered_json::object();
  nlohmann::ordered_json alphas_ = nlohmann::ordered_json::object();
  std::vector<std::string> saves_;
};

bool Trains(const EdgeConfig& edge) { return edge.through && !edge.through->frozen; }

/// PEFT loads adapters together with the folder that the run started from.
void RequireBase(const ModuleConfig& module) {
  if (module.weights) return;
  throw std::invalid_argument("--adapters apart: expected modules that started from a folder, \"" +
                              module.name + "\" started from random values; export it merged");
}

void RequireAdapters(const Config& config) {
  bool any = false;
  for (const ModuleConfig& module : config.modules) {
    any = any || module.lora;
    if (module.lora) RequireBase(module);
    if (module.keeps_parameters()) continue;
    throw std::invalid_argument("--adapters apart: expected adapters only, but module \"" +
                                module.name + "\" was trained as a whole");
  }
  if (any) return;
  throw std::invalid_argument(
      "--adapters apart: expected a run with adapters (modules.NAME.lora), this one has none");
}

ExportedFolder ProjectorFolder(const Config& config, const EdgeConfig& edge,
                               const std::map<std::string, ParameterSpec>& parameters) {
  ExportedFolder folder;
  folder.name = ProjectorName(edge);
  std::vector<ExportedTensor> tensors;
  for (const auto& [own, spec] : parameters) {
    if (spec.part != folder.name) continue;
    tensors.push_back({.name = own.substr(folder.name.size() + 1),
                       .type = WrittenType(config.run.precision),
                       .shape = spec.shape,
                       .own = own});
  }
  folder.files = {{"model.safetensors", std::move(tensors)}};
  return folder;
}

}  // namespace

ExportPlan PlanAdapters(const Config& config, const SavedParameters& saved) {
  RequireAdapters(config);
  const std::map<std::string, ParameterSpec> parameters = AllParameters(config);
  ExportPlan plan;
  plan.reason = WhyNoWhole(config);
  if (plan.reason.empty()) {
    AdapterFolder folder(config, saved, parameters);
    for (const ModuleConfig& module : config.modules) {
      if (module.lora) folder.AddModule(module, module.model.kind().foreign_in_memory);
    }
    const EdgeConfig& edge = config.edges.front();
    if (Trains(edge)) {
      if (HasNewline(config, edge)) {
        throw std::invalid_argument(
            "--adapters apart: PEFT has no place for " + NewlineName(edge) +
            ", which was trained with the projector; export without `--adapters apart`");
      }
      folder.AddProjector(edge);
    }
    plan.folders = {std::move(folder).Finish("", nullptr)};
    return plan;
  }
  const bool alone = config.modules.size() == 1;
  if (alone) plan.reason.clear();
  for (const ModuleConfig& module : config.modules) {
    if (!module.lora) continue;
    AdapterFolder folder(config, saved, parameters);
    folder.AddModule(module, module.model.kind().foreign_alone);
    plan.folders.push_back(std::move(folder).Finish(alone ? "" : module.name,
                                                    module.model->text() ? "CAUSAL_LM" : nullptr));
  }
  for (const EdgeConfig& edge : config.edges) {
    if (Trains(edge)) plan.folders.push_back(ProjectorFolder(config, edge, parameters));
  }
  return plan;
}

}  // namespace troupe
