#include "tests/configs/config_doc.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "configs/key_value.hpp"
#include "configs/loader.hpp"
#include "configs/schema.hpp"
#include "configs/suggest.hpp"

namespace troupe {

namespace fs = std::filesystem;

std::string TextOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> BrokenFiles() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator("tests/configs/broken")) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  const auto number = [](const fs::path& path) { return std::stoi(path.stem().string()); };
  std::ranges::sort(files, {}, number);
  return files;
}

std::string MessagesOf(const fs::path& path) {
  try {
    LoadConfig(path.string());
  } catch (const ConfigErrors& errors) {
    return errors.what() + std::string("\n");
  }
  return {};
}

static std::string DefaultText(const KeySpec& key) {
  if (key.required) return "required";
  if (key.type == ValueType::kRanks) return "required, or inline_in";
  if (!key.otherwise.empty()) return std::string(key.otherwise);
  const std::string value = PrintDefault(key);
  return value.empty() ? "none" : "`" + value + "`";
}

static std::string Row(const KeySpec& key) {
  std::string type = Expected(key);
  return "| `" + std::string(key.name) + "` | " + type + " | " + DefaultText(key) + " | " +
         std::string(key.meaning) + " |\n";
}

static std::string RowsOf(const TableSpec& table, bool (*wanted)(KindSet), KindSet kinds) {
  std::string rows;
  for (const auto& key : Keys()) {
    const bool here = key.table == table.path && (key.kinds & kinds) != 0;
    if (here && wanted(key.kinds)) rows += Row(key);
  }
  return "\n| key | value | default | meaning |\n|---|---|---|---|\n" + rows;
}

static bool IsOfOneKind(KindSet kinds) { return (kinds & (kinds - 1)) == 0; }

static std::string KeySection() {
  std::string text;
  for (const auto& table : Tables()) {
    text += "\n### " + std::string(table.title) + "\n\n" + std::string(table.meaning) + "\n";
    const bool module = table.path == "modules.*";
    if (!module) {
      text += RowsOf(
          table, [](KindSet) { return true; }, kEveryKind);
      continue;
    }
    text += RowsOf(
        table, [](KindSet kinds) { return !IsOfOneKind(kinds); }, kEveryKind);
    for (const ModuleKind* kind : Kinds()) {
      text += "\n#### kind = \"" + std::string(kind->word) + "\"\n";
      text += RowsOf(table, IsOfOneKind, Only(*kind));
    }
  }
  return text;
}

static std::string BrokenSection() {
  std::string text;
  for (const auto& path : BrokenFiles()) {
    text += "\n### " + path.stem().string() + "\n\n```toml\n" + TextOf(path) + "```\n```\n" +
            MessagesOf(path) + "```\n";
  }
  return text;
}

static std::string ReplaceBetween(const std::string& page, const std::string& name,
                                  const std::string& text) {
  const std::string begin = "<!-- " + name + " begin -->\n";
  const std::string end = "\n<!-- " + name + " end -->";
  const auto from = page.find(begin);
  const auto to = page.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from) {
    throw std::runtime_error("docs: the markers of \"" + name + "\" are missing");
  }
  return page.substr(0, from + begin.size()) + text + page.substr(to);
}

static std::string MinimalSection() {
  return "\n```toml\n" + TextOf("configs/minimal.toml") + "```\n";
}

std::vector<Page> Pages() {
  return {{"docs/config.md",
           [](const std::string& page) {
             return ReplaceBetween(ReplaceBetween(page, "minimal", MinimalSection()), "keys",
                                   KeySection());
           }},
          {"docs/mistakes.md", [](const std::string& page) {
             return ReplaceBetween(page, "broken", BrokenSection());
           }}};
}

}  // namespace troupe
