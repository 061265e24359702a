// A Hugging Face folder: the modules that it describes, and the names of their tensors.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/kind.hpp"
#include "kinds/projector.hpp"
#include "models/hf_config.hpp"
#include "models/image_processor.hpp"

namespace troupe {

/// A module as a folder describes it.
struct FolderModule {
  std::string file;  ///< DIR/config.json
  std::string part;  ///< key of the object that describes it, such as "text_config"; "": the file
  Model model;       ///< with all of its keys
  std::vector<DefaultedKey> defaulted;
  FolderImages images;
};

/// Reads config.json of `folder`, and its image processor: the model itself or, of a whole model, its part of `kind`. With
/// `kind` null the folder must describe one module, or one that emits rows if `emits_rows`, or one
/// that does not. Throws ModelFolderError: the file cannot be used, no part or several fit, a value
/// that is not supported.
FolderModule ReadFolderModule(const std::string& folder, const ModuleKind* kind,
                              std::optional<bool> emits_rows = {});

/// Returns the kinds of the modules that a folder describes; null for a part of another kind. Throws
/// ModelFolderError: the file cannot be used, or describes no model that is known.
std::vector<const ModuleKind*> KindsInFolder(const std::string& folder);

/// Returns whether config.json of a folder is that of a LLaVA whose images are cut into tiles. Throws
/// ModelFolderError: the file cannot be used.
bool IsLlavaNext(const std::string& folder);

/// The projector of a whole model as a folder describes it.
struct FolderProjector {
  std::string file;      ///< DIR/config.json
  ProjectorShape shape;  ///< kind and hidden
  std::vector<DefaultedKey> defaulted;
};

/// Throws ModelFolderError: the file cannot be used, it is no whole model, a value that is not
/// supported.
FolderProjector ReadFolderProjector(const std::string& folder);

/// Returns the name in a folder of a module's parameter `own`, given without the module:
/// "layers.0.mlp.up_proj.weight".
std::string NameIn(const ForeignNames& names, std::string_view own);

/// Returns `name` as the family of `model` spells it.
std::string SpelledFor(const ModelConfig& model, const std::string& name);

/// The reverse of NameIn: returns the part of `name` without a prefix, "" if it is no tensor of `kind`.
std::string OwnPart(const ModuleKind& kind, const ForeignNames& names, std::string_view name);

/// Returns the names of `kind` in a folder, null if it has no tensors of that kind. `has` returns
/// whether the folder has a tensor.
const ForeignNames* FindNames(const ModuleKind& kind,
                              const std::function<bool(const std::string& tensor)>& has);

}  // namespace troupe
