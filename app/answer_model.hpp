// Opens a Hugging Face folder or a run to answer questions with its model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answers/answerer.hpp"
#include "app/saved_run.hpp"
#include "configs/config.hpp"
#include "data/sample.hpp"
#include "modules/token_model.hpp"

namespace troupe {

/// A model that may be read, before it is.
struct AnswerSource {
  std::string name;             ///< of the folder or run
  std::string parameters;       ///< what they are read from
  std::optional<SavedRun> run;  ///< unset: a folder
  Config config;                ///< every module whole, frozen and not inline
  SampleFormat format;
  std::vector<std::string> encoders;  ///< the modules that read the fields of `format`
  AnswerStops stops;

  /// Whether several threads pay off: they wait for each other after each product.
  bool is_large() const;
};

struct AnswerOptions {
  std::vector<std::string> overrides = {};  ///< "KEY=VALUE" of a run's configuration
  std::optional<Precision> precision = {};  ///< unset: that of the folder or run
  std::string prompt =
      "auto";  ///< a word of data/text/prompt_table.hpp; "auto": as the run, or by folder
  std::string tokenizer = {};  ///< a value of data.tokenizer; "": that of the folder or run
};

/// `path` is a folder, a run directory or a checkpoint. Reads configurations and headers only.
/// Throws std::invalid_argument if `path` is none of them; ConfigErrors, DataError, ModelFolderError
/// or std::runtime_error if it cannot be used.
AnswerSource OpenAnswerSource(const std::string& path, const AnswerOptions& options);

/// Reads all parameters. `device`: Buffer::kHost or the number of a GPU. Throws std::runtime_error
/// for values that cannot be read.
std::unique_ptr<TokenModel> ReadAnswerModel(const AnswerSource& source, int device);

}  // namespace troupe
