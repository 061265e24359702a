#include "data/digest.hpp"

#include "configs/schema.hpp"
#include "files/file_error.hpp"
#include "files/sha256.hpp"
#include "layout/text.hpp"

namespace troupe {

/// Number of hexadecimal digits to show, enough to distinguish files.
static constexpr std::size_t kShownDigits = 16;

static std::string DigestOf(const std::string& path) {
  if (path.empty()) return "";
  try {
    return Sha256OfFile(path).substr(0, kShownDigits);
  } catch (const FileError&) {  // the code that opens the file reports it
    return "";
  }
}

std::string DataDigests(const Config& config) {
  const DataConfig& data = config.data;
  std::string lines;
  const auto add = [&lines](const std::string& key, const std::string& path) {
    const std::string digest = DigestOf(path);
    if (!digest.empty()) lines += key + " (contents) = sha256 " + digest + "\n";
  };
  if (config.schedule.kind == ScheduleKind::kCsv) add("schedule.file", config.schedule.file);
  add("data.tokenizer", SentencePieceFile(data.tokenizer));
  return lines;
}

/// The name of a tokenizer, with the contents of its files.
static std::string TokenizerText(const std::string& tokenizer) {
  const std::string model = SentencePieceFile(tokenizer);
  const std::string folder = HuggingFaceFolder(tokenizer);
  if (!model.empty()) return std::string(kSentencePiece) + DigestOf(model);
  if (folder.empty()) return tokenizer;
  std::string text(kHuggingFace);
  for (const char* const name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                                 "chat_template.jinja", "chat_template.json"}) {
    text += DigestOf(folder + "/" + name) + " ";
  }
  return text;
}

std::string FormatLines(const Config& config, std::int64_t context) {
  std::string text = "data.prompt = " + config.data.prompt +
                     "\nthe context of the language models = " + std::to_string(context) +
                     "\ndata.tokenizer (contents) = " + TokenizerText(config.data.tokenizer) + "\n";
  for (const ResolvedTable& table : ResolvedTables(config)) {
    const bool is_input = table.spec->path == "modules.*.input";
    const ModuleConfig* const module =
        config.Find(Split(table.dotted, '.').at(table.dotted.starts_with("modules.") ? 1 : 0));
    if (module == nullptr || !module->input) continue;  // it reads no items
    if (!is_input && table.spec->path != "modules.*") continue;
    for (const ResolvedKey& key : table.keys) {
      const bool of_kind = key.spec->kinds != kEveryKind || key.spec->name == "kind";
      if (is_input || of_kind) text += key.dotted + " = " + key.value + "\n";
    }
  }
  return text;
}

std::string FormatKey(const Config& config, std::int64_t context) {
  constexpr std::size_t kDigits = 32;
  return Sha256Of(FormatLines(config, context)).substr(0, kDigits);
}

}  // namespace troupe
