// Plans Hugging Face folders from the parameters of a run: which tensor of which file comes from
// where. checkpoint/export.hpp writes them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/saved_parameters.hpp"
#include "checkpoint/weights_folder.hpp"
#include "configs/config.hpp"
#include "models/write_config.hpp"

namespace troupe {

/// An adapter that is added to a weight. Both are our names of parameters that were saved.
struct ExportedAdapter {
  std::string a;  ///< [rank, in]
  std::string b;  ///< [out, rank]
  double scale = 1.0;
};

/// A tensor of a folder. It comes from one of three places.
struct ExportedTensor {
  std::string name;
  StoredType type = StoredType::kFloat32;
  Shape shape;
  std::string own = {};                ///< our name: a parameter that was saved
  const TensorFile* source = nullptr;  ///< else its bytes in a folder
  const TensorEntry* source_entry = nullptr;
  double constant = 0.0;  ///< else the value of all elements
  std::optional<ExportedAdapter> adapter = {};
};

struct ExportedFile {
  std::string name;  ///< "model.safetensors"
  std::vector<ExportedTensor> tensors;
};

struct ExportedFolder {
  std::string name;         ///< within the output; "": the output itself
  std::string config_json;  ///< empty: a projector alone
  std::vector<ExportedFile> files;
  std::map<std::string, std::string> texts;  ///< by name: other files to write
  std::vector<std::string> copies;           ///< paths of files to copy
};

struct ExportPlan {
  std::vector<ExportedFolder> folders;
  std::string model;   ///< "LlavaForConditionalGeneration"; "": parts that are no whole model
  std::string reason;  ///< why they are none; ""
  /// What `folders` point into.
  std::map<std::string, std::unique_ptr<WeightsFolder>> sources;
};

/// Plans the export of a model: one folder for a whole LLaVA or a single module, else one for each
/// module and projector. Tensors keep the types and names of the folders that modules started from,
/// which must still be there, and tensors that training does not use are carried along. An adapter
/// is added to the weight of its layer. Reads no values. Throws ModelFolderError for folders that
/// cannot be read, std::runtime_error for a parameter that was not saved or a kind that has no
/// folder.
ExportPlan PlanExport(const Config& config, const SavedParameters& saved,
                      const SpecialTokens& tokens);

/// Returns why a model is no LLaVA that transformers has, "" if it is one.
std::string WhyNoWhole(const Config& config);
/// Returns the type in which parameters are written that have no source.
StoredType WrittenType(Precision precision);

/// The most bytes of a file, unless one tensor has more.
inline constexpr std::uint64_t kMaxExportedFile = 5'000'000'000;

}  // namespace troupe
