// What is in a Hugging Face folder: for people who look before they train.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/stored_type.hpp"
#include "models/hf_config.hpp"

namespace troupe {

/// A module or projector in a folder.
struct FolderPart {
  std::string what;    ///< "vit", "llama", "projector"
  std::string prefix;  ///< of the names of its tensors: "language_model.model."
  std::int64_t num_tensors = 0;
  std::int64_t num_parameters = 0;  ///< elements of them
  std::uint64_t num_bytes = 0;
  std::map<StoredType, std::int64_t> types;  ///< tensors of each
  std::vector<std::string> missing;          ///< tensors that training needs
  std::vector<std::string> unused;           ///< tensors that it does not
  std::string failure;                       ///< why it cannot be trained; "": it can
};

struct FolderFacts {
  std::vector<FolderPart> parts;
  std::vector<DefaultedKey> defaulted;  ///< keys that config.json leaves out
  std::vector<std::string> unknown;     ///< tensors of no part
  std::size_t num_files = 0;
  std::uint64_t num_bytes = 0;  ///< of all tensors
};

/// Reads config.json and the headers of the weights. Throws ModelFolderError and std::runtime_error,
/// one line that names the file, if one of them cannot be used.
FolderFacts ReadFolderFacts(const std::string& folder);

}  // namespace troupe
