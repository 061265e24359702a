#include "checkpoint/folder_facts.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "checkpoint/weights_folder.hpp"
#include "models/model_folder.hpp"

namespace troupe {
namespace {

class Facts {
 public:
  explicit Facts(const std::string& folder) : folder_(folder), weights_(folder) {}

  FolderFacts Read() && {
    facts_.num_files = weights_.files().size();
    for (const ModuleKind* kind : KindsInFolder(folder_)) {
      if (kind != nullptr) facts_.parts.push_back(ReadModule(*kind));
    }
    if (facts_.parts.size() > 1 || weights_.Has("model.mm_projector.0.weight")) AddProjector();
    for (const auto& file : weights_.files()) {
      for (const TensorEntry& entry : file->entries) {
        facts_.num_bytes += entry.end - entry.begin;
        if (!taken_.contains(entry.name)) facts_.unknown.push_back(entry.name);
      }
    }
    return std::move(facts_);
  }

 private:
  void NoteDefaults(const std::vector<DefaultedKey>& keys) {
    for (const DefaultedKey& key : keys) {
      const auto& known = facts_.defaulted;
      if (std::ranges::find(known, key.key, &DefaultedKey::key) == known.end()) {
        facts_.defaulted.push_back(key);
      }
    }
  }

  void Count(const TensorEntry& entry, FolderPart& part) {
    taken_.insert(entry.name);
    ++part.num_tensors;
    part.num_parameters += NumElements(entry.shape);
    part.num_bytes += entry.end - entry.begin;
    ++part.types[entry.type];
  }

  /// Counts the tensors whose name `name_of` translates to ours, and compares them with `wanted`.
  template <class NameOf>
  void Fill(const std::vector<ParameterSpec>& wanted, NameOf name_of, FolderPart& part) {
    std::set<std::string> needed;
    for (const ParameterSpec& spec : wanted) needed.insert(spec.name);
    for (const auto& file : weights_.files()) {
      for (const TensorEntry& entry : file->entries) {
        const std::string own = name_of(entry.name);
        if (own.empty()) continue;
        Count(entry, part);
        if (needed.erase("." + own) == 0) part.unused.push_back(entry.name);
      }
    }
    for (const std::string& name : needed) part.missing.push_back(name.substr(1));
  }

  FolderPart ReadModule(const ModuleKind& kind) {
    FolderPart part;
    part.what = kind.word;
    std::vector<ParameterSpec> wanted;
    bool tied = false;
    try {
      const FolderModule module = ReadFolderModule(folder_, &kind);
      NoteDefaults(module.defaulted);
      tied = module.model->ties_embedding();
      ParameterList list(wanted, "", false);
      const std::int64_t layers = module.model->split_layers()->number;
      module.model->AddParameters({.layers = {0, layers}, .first = true, .last = true}, list);
    } catch (const ModelFolderError& error) {
      part.failure = error.what();
    }
    const ForeignNames* const names =
        FindNames(kind, [this](const std::string& name) { return weights_.Has(name); });
    if (names == nullptr) return part;
    part.prefix = names->body;
    Fill(
        wanted, [&](const std::string& name) { return OwnPart(kind, *names, name); }, part);
    if (tied) {  // a second copy of the embedding: export writes it again from that
      std::erase_if(part.unused,
                    [](const std::string& n) { return n.ends_with("lm_head.weight"); });
    }
    return part;
  }

  void AddProjector() {
    FolderPart part;
    part.what = "projector";
    std::vector<ParameterSpec> wanted;
    ProjectorShape shape;
    try {
      const FolderProjector projector = ReadFolderProjector(folder_);
      NoteDefaults(projector.defaulted);
      shape = projector.shape;
    } catch (const ModelFolderError& error) {
      part.failure = error.what();
    }
    ParameterList list(wanted, "", false);
    AddProjectorParameters(shape, list);
    if (IsLlavaNext(folder_)) AddNewlineParameter(shape, list);
    std::map<std::string, std::string> own;  // by their name
    for (const ParameterSpec& spec : wanted) {
      const auto name =
          ForeignProjectorName(shape.kind, spec.name.substr(1),
                               [this](const std::string& tensor) { return weights_.Has(tensor); });
      if (!name) continue;
      own[*name] = spec.name.substr(1);
      if (part.prefix.empty())
        part.prefix = name->substr(0, name->rfind('.', name->rfind('.') - 1));
    }
    Fill(
        wanted,
        [&](const std::string& name) { return own.contains(name) ? own.at(name) : std::string(); },
        part);
    facts_.parts.push_back(std::move(part));
  }

  const std::string& folder_;
  WeightsFolder weights_;
  FolderFacts facts_;
  std::set<std::string> taken_;
};

}  // namespace

FolderFacts ReadFolderFacts(const std::string& folder) { return Facts(folder).Read(); }

}  // namespace troupe
