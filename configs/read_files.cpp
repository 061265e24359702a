#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "configs/key_value.hpp"
#include "configs/merge.hpp"
#include "configs/sources.hpp"
#include "configs/text_file.hpp"
#include "configs/toml_parse.hpp"

namespace troupe {

namespace fs = std::filesystem;

static constexpr std::size_t kMaxDepth = 8;
/// A configuration is about a page; a larger file is probably not one.
static constexpr std::size_t kMaxFileBytes = 1U << 20U;

namespace {

/// A file being read: its path as the user sees it, and its canonical form.
struct OpenFile {
  std::string path;
  fs::path canonical;
};

}  // namespace

static ConfigError At(const Place& place, std::string text) {
  return {place.file, place.line, place.column, std::move(text)};
}

static std::string CycleText(const std::vector<OpenFile>& chain, std::size_t first) {
  std::string text = "extends: cycle ";
  for (std::size_t i = first; i < chain.size(); ++i) text += chain[i].path + " -> ";
  return text + chain[first].path;
}

static TomlValue ReadChain(const std::string& path, const Place& asked,
                           std::vector<OpenFile>& chain, std::vector<ConfigError>& errors);

static TomlValue ReadBases(const TomlValue& file, std::vector<OpenFile>& chain,
                           std::vector<ConfigError>& errors) {
  TomlValue merged;
  merged.place = file.place;
  const TomlEntry* extends = file.Find("extends");
  if (extends == nullptr) return merged;
  if (!extends->value.Is(TomlValue::Kind::kArray)) {
    errors.push_back(At(extends->value.place,
                        "extends: expected a list of files, got " + Described(extends->value)));
    return merged;
  }
  for (const auto& item : extends->value.items) {
    if (!item.Is(TomlValue::Kind::kString) || item.string.empty()) {
      errors.push_back(At(item.place, "extends: expected a file, got " + Described(item)));
      continue;
    }
    const fs::path base = fs::path(file.place.file).parent_path() / item.string;
    Merge(merged, ReadChain(base.lexically_normal().string(), item.place, chain, errors));
  }
  return merged;
}

/// Refuses another version of the format in every file, even if an extending file replaces the key.
static void CheckSchema(const TomlValue& file, std::vector<ConfigError>& errors) {
  const TomlEntry* schema = file.Find("schema");
  if (schema == nullptr) return;
  if (const auto refusal = ReadValue(*FindKey("", "schema"), schema->value, {})) {
    errors.push_back(At(refusal->place, "schema: " + refusal->text));
  }
}

static TomlValue ParseFile(const std::string& path, const Place& asked,
                           std::vector<ConfigError>& errors) {
  TextFile content = ReadTextFile(path, kMaxFileBytes, "expected at most 1 MiB of TOML, got more");
  if (!content.failure.empty()) {
    const std::string subject = asked.line == 0 ? "" : "extends: \"" + path + "\" ";
    errors.push_back(At(asked, subject + content.failure));
    return {};
  }
  auto parsed = ParseToml(content.text, path);
  if (auto* error = std::get_if<ConfigError>(&parsed)) {
    errors.push_back(std::move(*error));
    return {};
  }
  return std::get<TomlValue>(std::move(parsed));
}

static TomlValue ReadChain(const std::string& path, const Place& asked,
                           std::vector<OpenFile>& chain, std::vector<ConfigError>& errors) {
  std::error_code code;
  const fs::path canonical = fs::weakly_canonical(path, code);
  const auto open = std::ranges::find(chain, canonical, &OpenFile::canonical);
  if (open != chain.end()) {
    errors.push_back(At(asked, CycleText(chain, static_cast<std::size_t>(open - chain.begin()))));
    return {};
  }
  if (chain.size() > kMaxDepth) {
    errors.push_back(At(asked, "extends: expected at most 8 files one above the other, got more"));
    return {};
  }
  TomlValue file = ParseFile(path, asked, errors);
  if (file.place.file.empty()) return {};
  CheckSchema(file, errors);
  for (auto& error : RepeatedEdges(file)) errors.push_back(std::move(error));
  chain.push_back({path, canonical});
  TomlValue merged = ReadBases(file, chain, errors);
  chain.pop_back();
  file.Erase("extends");
  Merge(merged, std::move(file));
  return merged;
}

TomlValue ReadFiles(const std::string& path, std::vector<ConfigError>& errors) {
  std::vector<OpenFile> chain;
  return ReadChain(path, Place{path, 0, 0}, chain, errors);
}

}  // namespace troupe
