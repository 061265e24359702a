// A Hugging Face folder: the modules that it describes, and the names of their tensors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/kind.hpp"
#include "models/hf_config.hpp"
#include "models/image_processor.hpp"

namespace troupe {

/// A module as a folder describes it.
struct FolderModule {
  std::string file;  ///< DIR/config.json
  Model model;       ///< with all of its keys
  std::vector<DefaultedKey> defaulted;
  FolderImages images;
};

/// Reads config.json of `folder`, and its image processor: the model itself or, of a whole model, its part of `kind`. With
/// `kind` null the folder must describe one module. Throws ModelFolderError: the file cannot be
/// used, no part or several fit, a value that is not supported.
FolderModule ReadFolderModule(const std::string& folder, const ModuleKind* kind);

/// Returns the name in a folder of a module's parameter `own`, given without the module:
/// "layers.0.mlp.up_proj.weight".
std::string NameIn(const ForeignNames& names, std::string_view own);

/// Returns the names of `kind` in a folder, null if it has no tensors of that kind. `has` returns
/// whether the folder has a tensor.
const ForeignNames* FindNames(const ModuleKind& kind,
                              const std::function<bool(const std::string& tensor)>& has);

}  // namespace troupe
