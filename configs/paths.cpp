#include "configs/paths.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "configs/checks.hpp"
#include "configs/loader.hpp"
#include "configs/schema.hpp"
#include "files/text_file.hpp"

namespace troupe {

namespace fs = std::filesystem;

static std::string AbsolutePath(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).lexically_normal().string();
}

static std::string LocatedPath(const std::string& path, const Place& stated) {
  if (path.empty()) return path;
  const fs::path folder = stated.argument ? fs::path() : fs::path(stated.file).parent_path();
  const fs::path there = AbsolutePath((folder / path).string());
  const fs::path near = there.lexically_relative(fs::current_path());
  const bool below = !near.empty() && *near.begin() != "..";
  return (below ? near : there).string();
}

/// Applies `change` to the path in `value`.
template <class Change>
static std::string WithPath(ValueType form, const std::string& value, Change change) {
  if (form == ValueType::kPath) return change(value);
  if (form == ValueType::kTokenizer && !SentencePieceFile(value).empty()) {
    return std::string(kSentencePiece) + change(SentencePieceFile(value));
  }
  const bool may_be_folder = form == ValueType::kWeights || form == ValueType::kTokenizer;
  if (may_be_folder && !HuggingFaceFolder(value).empty()) {
    return std::string(kHuggingFace) + change(HuggingFaceFolder(value));
  }
  if (form == ValueType::kWeights && !WeightsRun(value).empty()) {
    return std::string(kRunWeights) + change(WeightsRun(value));
  }
  return value;
}

std::string Located(ValueType form, const std::string& value, const Place& stated) {
  return WithPath(form, value, [&](const std::string& path) { return LocatedPath(path, stated); });
}

std::string Absolute(ValueType form, const std::string& value) {
  return WithPath(form, value, AbsolutePath);
}

bool HoldsPath(const KeySpec& key) {
  return key.type == ValueType::kPath || key.type == ValueType::kTokenizer ||
         key.type == ValueType::kWeights;
}

/// Returns whether a path is a pattern (data/rows/shards.hpp). Its files are looked for when rows are read.
static bool StandsForMany(const std::string& path) {
  return path.find_first_of("{*?[") != std::string::npos && !WhyNotOpened(path).empty();
}

std::vector<MissingFile> MissingDataFiles(const Config& config) {
  std::vector<MissingFile> missing;
  const auto require = [&](const std::string& key, const std::string& path) {
    if (path.empty() || StandsForMany(path)) return;
    const std::string reason = WhyNotOpened(path);
    if (!reason.empty()) missing.push_back({key, AbsolutePath(path), reason});
  };
  const auto computes = [](const auto& module) { return module.model->computes(); };
  if (!std::ranges::all_of(config.modules, computes)) return missing;
  require("data.train", config.data.train);
  for (std::size_t i = 0; i < config.data.sources.size(); ++i) {
    require(SourceKey(i, "path"), config.data.sources[i].path);
  }
  require("data.held_out", config.data.held_out);
  require("data.tokenizer", SentencePieceFile(config.data.tokenizer));
  const std::string folder = HuggingFaceFolder(config.data.tokenizer);
  const bool has_model = !folder.empty() && WhyNotOpened(folder + "/tokenizer.model").empty();
  if (!folder.empty() && !has_model) require("data.tokenizer", folder + "/tokenizer.json");
  return missing;
}

void RequireDataFiles(const LoadedConfig& loaded) {
  std::vector<ConfigError> errors;
  for (const MissingFile& file : MissingDataFiles(loaded.config)) {
    const Origin& origin = loaded.origins.at(file.key);
    errors.push_back({origin.place, file.key + ": " + origin.written + ": " + file.reason +
                                        "; looked for " + file.looked_for});
  }
  if (!errors.empty()) throw ConfigErrors(std::move(errors));
}

}  // namespace troupe
