// The image processor of a Hugging Face folder: preprocessor_config.json, or the part
// `image_processor` of processor_config.json, as transformers reads them.
#pragma once

#include <string>
#include <vector>

#include "kinds/kind.hpp"
#include "models/hf_config.hpp"

namespace troupe {

/// The origin of the recipe of a module that reads images.
struct FolderImages {
  /// Empty: no file says it, and the recipe is that of the kind. config.json says what tiles there are.
  std::string file;
  std::vector<DefaultedKey> defaulted;
};

/// Fills the recipe of `model`, which may read no images. Throws ModelFolderError: the file cannot
/// be used, a step that is not supported, a size other than that of the encoder.
FolderImages ReadImageProcessor(const std::string& folder, ModelConfig& model);

}  // namespace troupe
