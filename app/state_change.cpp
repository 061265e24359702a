#include "app/state_change.hpp"

#include <map>
#include <set>
#include <stdexcept>

#include "layout/text.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// The tensors of a part that only one side has. Of moments, those of the parameters that both have:
/// names of the parameters.
struct Difference {
  bool before = false;  ///< the checkpoint has any of its parameters
  bool now = false;     ///< the configuration has
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> trained;  ///< from here on
  std::vector<std::string> frozen;   ///< likewise
};

bool HasMoments(const CheckpointManifest& saved, const std::string& name) {
  return saved.tensors.contains(StoredName(TensorKind::kFirstMoment, name));
}

/// Names of parameters in a checkpoint.
std::set<std::string> ParametersOf(const CheckpointManifest& saved) {
  std::set<std::string> names;
  const std::string kind = StoredName(TensorKind::kParameter, "");
  for (const auto& [name, tensor] : saved.tensors) {
    if (name.starts_with(kind)) names.insert(name.substr(kind.size()));
  }
  return names;
}

/// Compares a parameter that the configuration has.
void Compare(const ParameterSpec& spec, const CheckpointManifest& saved, Difference& part) {
  part.now = true;
  const auto found = saved.tensors.find(StoredName(TensorKind::kParameter, spec.name));
  if (found == saved.tensors.end()) {
    if (!(spec.frozen && spec.from_folder)) part.added.push_back(spec.name);
    return;
  }
  if (found->second.shape != spec.shape) {
    throw std::runtime_error("tensor " + spec.name + " is " + ToString(spec.shape) +
                             ", in the checkpoint " + ToString(found->second.shape));
  }
  const bool trained = HasMoments(saved, spec.name);
  if (trained && spec.frozen) {
    if (spec.from_folder) {
      throw std::runtime_error(
          spec.part +
          " was trained and is frozen now, so its folder's values would replace those "
          "that were trained: set its `weights` to \"run:\" and the run's directory");
    }
    part.frozen.push_back(spec.name);
  }
  if (!trained && !spec.frozen) part.trained.push_back(spec.name);
}

std::string Count(const std::vector<std::string>& tensors) {
  return Counted(std::ssize(tensors), "tensor") + " (" + tensors.front() +
         (tensors.size() > 1 ? ", ..." : "") + ")";
}

std::string LineOf(const Difference& part) {
  if (!part.before && part.now) {
    return "is not in the checkpoint: its " + Count(part.added) + " begin with their own values";
  }
  if (!part.now) return "is left out: its " + Count(part.removed) + " are not read";
  std::vector<std::string> texts;
  const auto add = [&](const std::vector<std::string>& tensors, const std::string& text) {
    if (!tensors.empty()) texts.push_back(Count(tensors) + " " + text);
  };
  add(part.added, "not in the checkpoint begin with their own values");
  add(part.removed, "are left out");
  add(part.trained, "that were frozen are trained from here on, with moments of 0");
  add(part.frozen, "that were trained are frozen from here on, and their moments left out");
  return Listed(texts, "; ");
}

}  // namespace

std::vector<PartChange> CompareState(const Config& now, const CheckpointManifest& saved) {
  std::map<std::string, Difference> parts;
  const std::map<std::string, ParameterSpec> needed = AllParameters(now);
  for (const auto& [name, spec] : needed) Compare(spec, saved, parts[spec.part]);
  for (const std::string& name : ParametersOf(saved)) {
    const std::string part = PartNameOf(name);
    const ModuleConfig* const module = now.Find(part);
    if (module != nullptr && !module->model->computes()) continue;  // it has parameters of its own
    Difference& difference = parts[part];
    difference.before = true;
    if (!needed.contains(name)) difference.removed.push_back(name);
  }
  std::vector<PartChange> changes;
  for (const auto& [name, part] : parts) {
    const bool fresh = !part.added.empty() || !part.trained.empty();
    if (!fresh && part.removed.empty() && part.frozen.empty()) continue;
    changes.push_back({name, LineOf(part), fresh});
  }
  return changes;
}

}  // namespace troupe
