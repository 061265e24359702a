#include "app/state_change.hpp"

#include <map>
#include <set>
#include <stdexcept>

#include "layout/text.hpp"
#include "modules/tensor_pieces.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {
namespace {

/// How a part differs: names of its parameters.
struct Difference {
  bool before = false;  ///< the checkpoint has any of its parameters
  bool now = false;     ///< the configuration has
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> trained;   ///< from here on
  std::vector<std::string> frozen;    ///< likewise
  std::vector<std::string> replaced;  ///< by those of a folder
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
  if (!trained && spec.frozen && spec.from_folder) part.replaced.push_back(spec.name);
}

/// "12 tensors (vision.norm.weight, ...)".
std::string Count(const std::vector<std::string>& tensors) {
  return Counted(std::ssize(tensors), "tensor") + " (" + tensors.front() +
         (tensors.size() > 1 ? ", ..." : "") + ")";
}

std::string LineOf(const Difference& part) {
  if (!part.before)
    return "not in the checkpoint, begins with its own values: " + Count(part.added);
  if (!part.now) return "left out: " + Count(part.removed);
  std::vector<std::string> texts;
  const auto add = [&](const char* text, const std::vector<std::string>& tensors) {
    if (!tensors.empty()) texts.push_back(text + Count(tensors));
  };
  add("not in the checkpoint, with their own values: ", part.added);
  add("left out: ", part.removed);
  add("frozen before, trained from here on with moments of 0: ", part.trained);
  add("not those of the checkpoint, but of the folder: ", part.replaced);
  add("trained before, frozen from here on without moments: ", part.frozen);
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
    if (module != nullptr && !module->model->computes()) continue;  // AllParameters has none of it
    Difference& difference = parts[part];
    difference.before = true;
    if (!needed.contains(name)) difference.removed.push_back(name);
  }
  std::vector<PartChange> changes;
  for (const auto& [name, part] : parts) {
    const bool fresh = !part.added.empty() || !part.trained.empty();
    if (!fresh && part.removed.empty() && part.frozen.empty() && part.replaced.empty()) continue;
    changes.push_back({name, LineOf(part), fresh});
  }
  return changes;
}

}  // namespace troupe
