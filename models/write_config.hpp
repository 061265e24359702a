// Writes config.json of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kinds/kind.hpp"
#include "kinds/projector.hpp"
#include "models/write_tokenizer.hpp"

namespace troupe {

/// A module to write.
struct ModuleToWrite {
  const ModelConfig& model;
  std::string folder;      ///< the Hugging Face folder that it started from; empty: random values
  std::string dtype_word;  ///< "bfloat16": of its tensors, if it started from random values
  // Tokens of a language model that started from random values.
  std::optional<std::int64_t> bos = {};
  std::optional<std::int64_t> eos = {};
};

/// Whether a module of its kind can stand in a folder.
bool IsWritable(const ModuleKind& kind);

/// Returns the text of config.json for a module alone. What its folder says stays, but for the keys
/// that the run changed. Throws ModelFolderError for a folder that cannot be read.
std::string ModuleConfigJson(const ModuleToWrite& module);

/// The tokens that a whole model names, and those that a run gave to its tokenizer.
struct SpecialTokens {
  std::int64_t image = 0;
  std::optional<std::int64_t> pad = {};
  std::optional<std::int64_t> bos = {};
  std::optional<std::int64_t> eos = {};
  std::vector<AddedToken> added = {};
};

/// Returns the class of a whole model with that encoder: "LlavaForConditionalGeneration", or if its
/// images are cut into tiles "LlavaNextForConditionalGeneration".
std::string LlavaClass(const ModelConfig& vision);

/// Returns why no whole model of transformers is made of these parts, ending with the expected part;
/// "" if one is, of LlavaClass.
std::string WhyNoLlava(const ModelConfig& vision, const ProjectorShape& projector,
                       const ModelConfig& language);

/// Returns the text of config.json for such a model. `whole` is the folder of a whole model that
/// both started from and whose tokens stay; empty: there is none. Throws like ModuleConfigJson.
std::string LlavaConfigJson(const ModuleToWrite& vision, const ModuleToWrite& language,
                            const SpecialTokens& tokens, const std::string& whole);

/// Returns the text of preprocessor_config.json for the images of an encoder; "" if its folder says
/// the same, or it reads no images. Throws like ModuleConfigJson.
std::string ImageProcessorJson(const ModuleToWrite& module);

/// Returns the text of processor_config.json for it.
std::string LlavaProcessorJson(const ModelConfig& vision);

}  // namespace troupe
