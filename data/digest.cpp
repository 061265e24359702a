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

std::string FormatKey(const Config& config, std::int64_t context) {
  const DataConfig& data = config.data;
  const std::string model = SentencePieceFile(data.tokenizer);
  const std::string folder = HuggingFaceFolder(data.tokenizer);
  std::string text = data.prompt + " " + std::to_string(context) + " ";
  if (!model.empty()) {
    text += std::string(kSentencePiece) + DigestOf(model);
  } else if (folder.empty()) {
    text += data.tokenizer;
  } else {
    text += kHuggingFace;
    for (const char* const name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                                   "chat_template.jinja", "chat_template.json"}) {
      text += DigestOf(folder + "/" + name) + " ";
    }
  }
  for (const ResolvedTable& table : ResolvedTables(config)) {
    const bool is_input = table.spec->path == "modules.*.input";
    const ModuleConfig* const module =
        config.Find(Split(table.dotted, '.').at(table.dotted.starts_with("modules.") ? 1 : 0));
    if (module == nullptr || !module->input) continue;  // it reads no items
    if (!is_input && table.spec->path != "modules.*") continue;
    for (const ResolvedKey& key : table.keys) {
      const bool of_kind = key.spec->kinds != kEveryKind || key.spec->name == "kind";
      if (is_input || of_kind) text += "\n" + key.dotted + " = " + key.value;
    }
  }
  constexpr std::size_t kDigits = 32;
  return Sha256Of(text).substr(0, kDigits);
}

}  // namespace troupe
