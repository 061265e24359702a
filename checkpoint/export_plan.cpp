#include "checkpoint/export_plan.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "checkpoint/export_files.hpp"
#include "models/model_folder.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

std::string TorchWord(StoredType type) {
  if (type == StoredType::kBFloat16) return "bfloat16";
  return type == StoredType::kFloat64 ? "float64" : "float32";
}

std::string FolderOf(const std::optional<std::string>& weights) {
  return weights ? HuggingFaceFolder(*weights) : "";
}

class Planner {
 public:
  Planner(const Config& config, const SavedParameters& saved, const SpecialTokens& tokens)
      : config_(config), saved_(saved), tokens_(tokens), parameters_(AllParameters(config)) {}

  ExportPlan Plan() && {
    for (const ModuleConfig& module : config_.modules) {
      if (IsWritable(module.model.kind())) continue;
      throw std::runtime_error("modules." + module.name + ".kind: a \"" +
                               std::string(module.model.kind().word) +
                               "\" has no Hugging Face folder; expected one of another kind");
    }
    plan_.reason = WhyNoWhole(config_);
    if (config_.modules.size() == 1) {
      plan_.folders = {Alone(config_.modules.front(), "")};
      plan_.reason.clear();
    } else if (plan_.reason.empty()) {
      plan_.model = LlavaClass(*FindModule(config_, config_.edges.front().from).model);
      plan_.folders = {Whole()};
    } else {
      for (const ModuleConfig& module : config_.modules) {
        plan_.folders.push_back(Alone(module, module.name));
      }
      for (const EdgeConfig& edge : config_.edges) {
        if (edge.through) plan_.folders.push_back(ProjectorAlone(edge));
      }
    }
    return std::move(plan_);
  }

 private:
  const WeightsFolder& Source(const std::string& folder) {
    auto& source = plan_.sources[folder];
    if (source == nullptr) source = std::make_unique<WeightsFolder>(folder);
    return *source;
  }

  /// Whether the run's texts were read with the tokenizer of `folder`.
  bool ReadsTexts(const std::string& folder) const {
    namespace fs = std::filesystem;
    const fs::path file(SentencePieceFile(config_.data.tokenizer));
    return HuggingFaceFolder(config_.data.tokenizer) == folder ||
           (!file.empty() && file.parent_path() == fs::path(folder));
  }

  ModuleToWrite ToWrite(const ModuleConfig& module) const {
    ModuleToWrite result{.model = *module.model,
                         .folder = FolderOf(module.weights),
                         .dtype_word = TorchWord(WrittenType(config_.run.precision))};
    if (module.model->text() && result.folder.empty()) {
      result.bos = tokens_.bos;
      result.eos = tokens_.eos;
    }
    return result;
  }

  /// The tensor `name` for the parameter `own`, with the type of the source's if there is one.
  ExportedTensor Saved(const std::string& name, const std::string& own, StoredType type) const {
    const Shape& shape = parameters_.at(own).shape;
    if (!saved_.Has(own)) {
      throw std::runtime_error("parameter " + own + ": expected a saved value, found none");
    }
    if (saved_.ShapeOf(own) != shape) {
      throw std::runtime_error("parameter " + own + ": expected " + ToString(shape) + ", got " +
                               ToString(saved_.ShapeOf(own)));
    }
    return {.name = name, .type = type, .shape = shape, .own = own};
  }

  /// The parameter that the tensor `rest` of a module's folder holds; nothing if training does not
  /// use it.
  std::optional<std::string> OwnOf(const ModuleConfig& module, std::string_view rest) const {
    const bool tied = rest == "lm_head.weight" && module.model->ties_embedding();
    const std::string own =
        module.name + "." + (tied ? std::string("embed_tokens.weight") : std::string(rest));
    if (!parameters_.contains(own)) return std::nullopt;
    return own;
  }

  std::optional<ExportedAdapter> AdapterOf(const ModuleConfig& module,
                                           const std::string& own) const {
    const std::string a = AdapterName(own, AdapterEnd::kIn);
    if (!parameters_.contains(a)) return std::nullopt;
    return ExportedAdapter{a, AdapterName(own, AdapterEnd::kOut), module.lora->scale()};
  }

  /// Adds the tensors of a module, under `written` or, if that is null, the names of its source.
  void AddModule(const ModuleConfig& module, const ForeignNames* written,
                 std::vector<ExportedTensor>& tensors) {
    const ModuleKind& kind = module.model.kind();
    std::set<std::string> done;
    const std::string folder = FolderOf(module.weights);
    const WeightsFolder* const source = folder.empty() ? nullptr : &Source(folder);
    const ForeignNames* found = nullptr;
    if (source != nullptr) {
      found = FindNames(kind, [&](const std::string& name) { return source->Has(name); });
      if (found == nullptr) {
        throw ModelFolderError(folder + ": expected the tensors of a \"" + std::string(kind.word) +
                               "\", found none");
      }
      for (const auto& file : source->files()) {
        for (const TensorEntry& entry : file->entries) {
          const std::string rest = OwnPart(kind, *found, entry.name);
          if (rest.empty()) continue;
          taken_.insert({folder, entry.name});
          const std::string name =
              SpelledFor(*module.model, NameIn(written ? *written : *found, rest));
          const auto own = OwnOf(module, rest);
          if (own) done.insert(*own);
          // A frozen module's values are those of its folder, and are not saved.
          const bool saved = own && (saved_.Has(*own) || !parameters_.at(*own).frozen);
          tensors.push_back(saved ? Saved(name, *own, entry.type)
                                  : ExportedTensor{.name = name,
                                                   .type = entry.type,
                                                   .shape = entry.shape,
                                                   .source = file.get(),
                                                   .source_entry = &entry});
          if (own) tensors.back().adapter = AdapterOf(module, *own);
        }
      }
    }
    const ForeignNames& names =
        written != nullptr ? *written : (found != nullptr ? *found : kind.foreign_alone);
    AddOthers(module, names, done, source == nullptr, tensors);
  }

  /// Adds the parameters of a module that its source does not have and, without one, constants.
  void AddOthers(const ModuleConfig& module, const ForeignNames& names,
                 const std::set<std::string>& done, bool constants,
                 std::vector<ExportedTensor>& tensors) {
    const StoredType type = WrittenType(config_.run.precision);
    for (const auto& [own, spec] : parameters_) {
      if (spec.part != module.name || !spec.adapts.empty() || done.contains(own)) continue;
      tensors.push_back(Saved(SpelledFor(*module.model, NameIn(names, std::string_view(own).substr(
                                                                          module.name.size() + 1))),
                              own, type));
      tensors.back().adapter = AdapterOf(module, own);
    }
    const ModuleKind& kind = module.model.kind();
    if (!constants || kind.foreign_constants == nullptr) return;
    for (const ForeignConstant& constant : kind.foreign_constants(*module.model)) {
      tensors.push_back({.name = NameIn(names, constant.name),
                         .type = type,
                         .shape = constant.shape,
                         .constant = constant.value});
    }
  }

  void AddProjector(const EdgeConfig& edge, const std::string& prefix,
                    std::vector<ExportedTensor>& tensors) {
    const std::string folder = FolderOf(edge.through->weights);
    const WeightsFolder* const source = folder.empty() ? nullptr : &Source(folder);
    const std::string part = ProjectorName(edge) + ".";
    for (const auto& [own, spec] : parameters_) {
      if (!own.starts_with(part)) continue;
      const std::string rest = own.substr(part.size());
      const std::string written = rest == kNewline ? rest : prefix + rest;
      StoredType type = WrittenType(config_.run.precision);
      const TensorEntry* entry = nullptr;
      const TensorFile* file = nullptr;
      if (source != nullptr) {
        const auto name =
            ForeignProjectorName(edge.through->kind, rest,
                                 [&](const std::string& tensor) { return source->Has(tensor); });
        for (const auto& one : source->files()) {
          if (!name || FindEntry(one->entries, *name) == nullptr) continue;
          file = one.get();
          entry = FindEntry(one->entries, *name);
          type = entry->type;
          taken_.insert({folder, *name});
        }
      }
      const bool copied = entry != nullptr && !saved_.Has(own) && spec.frozen;
      tensors.push_back(copied ? ExportedTensor{.name = written,
                                                .type = type,
                                                .shape = entry->shape,
                                                .source = file,
                                                .source_entry = entry}
                               : Saved(written, own, type));
    }
  }

  /// Adds the tensors of `folder` that no module has taken, unchanged, but for those in whose place
  /// another is written: of a projector that started from random values.
  void AddUnused(const std::string& folder, std::vector<ExportedTensor>& tensors) {
    std::set<std::string> written;
    for (const ExportedTensor& tensor : tensors) written.insert(tensor.name);
    for (const auto& file : Source(folder).files()) {
      for (const TensorEntry& entry : file->entries) {
        if (taken_.contains({folder, entry.name}) || written.contains(entry.name)) continue;
        tensors.push_back({.name = entry.name,
                           .type = entry.type,
                           .shape = entry.shape,
                           .source = file.get(),
                           .source_entry = &entry});
      }
    }
  }

  ExportedFolder Alone(const ModuleConfig& module, const std::string& name) {
    ExportedFolder folder;
    folder.name = name;
    folder.config_json = ModuleConfigJson(ToWrite(module));
    std::vector<ExportedTensor> tensors;
    AddModule(module, nullptr, tensors);
    const std::string source = FolderOf(module.weights);
    const bool whole_folder =
        !source.empty() && ReadFolderModule(source, &module.model.kind()).part.empty();
    if (whole_folder) AddUnused(source, tensors);
    folder.files = Divide(std::move(tensors), whole_folder ? &Source(source) : nullptr);
    AddImageProcessor(module, folder);
    AddSideFiles(source, ReadsTexts(source), folder);
    return folder;
  }

  void AddImageProcessor(const ModuleConfig& module, ExportedFolder& folder) const {
    const std::string json = ImageProcessorJson(ToWrite(module));
    if (!json.empty()) folder.texts["preprocessor_config.json"] = json;
  }

  ExportedFolder ProjectorAlone(const EdgeConfig& edge) {
    ExportedFolder folder;
    folder.name = ProjectorName(edge);
    std::vector<ExportedTensor> tensors;
    AddProjector(edge, "", tensors);
    folder.files = Divide(std::move(tensors), nullptr);
    return folder;
  }

  ExportedFolder Whole() {
    const EdgeConfig& edge = config_.edges.front();
    const ModuleConfig& vision = FindModule(config_, edge.from);
    const ModuleConfig& language = FindModule(config_, edge.to);
    const std::string folder = FolderOf(language.weights);
    const bool same = !folder.empty() && vision.weights == language.weights &&
                      !ReadFolderModule(folder, &vision.model.kind()).part.empty();
    const std::string whole = same ? folder : "";
    ExportedFolder result;
    result.config_json = LlavaConfigJson(ToWrite(vision), ToWrite(language), tokens_, whole);
    if (whole.empty() || IsLlavaNext(whole) != HasNewline(config_, edge)) {
      result.texts["processor_config.json"] = LlavaProcessorJson(*vision.model);
    }
    std::vector<ExportedTensor> tensors;
    AddModule(vision, &vision.model.kind().foreign_in_whole, tensors);
    AddProjector(edge, "multi_modal_projector.", tensors);
    AddModule(language, &language.model.kind().foreign_in_whole, tensors);
    // A newline row is written with tiles, else no program would know it.
    for (const std::string_view name : kForeignNewlines) taken_.emplace(whole, name);
    if (!whole.empty()) AddUnused(whole, tensors);
    result.files = Divide(std::move(tensors), whole.empty() ? nullptr : &Source(whole));
    AddImageProcessor(vision, result);
    if (!whole.empty()) {
      AddSideFiles(whole, ReadsTexts(whole), result);
      return result;
    }
    const std::string tokenizer = HuggingFaceFolder(config_.data.tokenizer);
    AddTokenizer(tokenizer.empty() ? folder : tokenizer, tokens_.added, result);
    AddSideFiles(FolderOf(vision.weights), ReadsTexts(FolderOf(vision.weights)), result);
    AddSideFiles(folder, ReadsTexts(folder), result);
    return result;
  }

  const Config& config_;
  const SavedParameters& saved_;
  const SpecialTokens tokens_;
  const std::map<std::string, ParameterSpec> parameters_;
  std::set<std::pair<std::string, std::string>> taken_;  ///< folder and tensor
  ExportPlan plan_;
};

}  // namespace

std::string WhyNoWhole(const Config& config) {
  if (config.modules.size() != 2 || config.edges.size() != 1) {
    return "it is not one encoder and one language model";
  }
  const EdgeConfig& edge = config.edges.front();
  if (!edge.through) return "there is no projector between its modules";
  return WhyNoLlava(*FindModule(config, edge.from).model, ProjectorShapeOf(config, edge),
                    *FindModule(config, edge.to).model);
}

StoredType WrittenType(Precision precision) {
  if (precision == Precision::kBFloat16) return StoredType::kBFloat16;
  return precision == Precision::kFloat64 ? StoredType::kFloat64 : StoredType::kFloat32;
}

ExportPlan PlanExport(const Config& config, const SavedParameters& saved,
                      const SpecialTokens& tokens) {
  return Planner(config, saved, tokens).Plan();
}

}  // namespace troupe
