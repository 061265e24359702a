#include "data/digest.hpp"

#include "files/file_error.hpp"
#include "files/sha256.hpp"

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
  add("data.train", data.train);
  add("data.held_out", data.held_out);
  if (config.schedule.kind == ScheduleKind::kCsv) add("schedule.file", config.schedule.file);
  add("data.tokenizer", SentencePieceFile(data.tokenizer));
  return lines;
}

std::string TrainDigest(const Config& config) { return DigestOf(config.data.train); }

}  // namespace troupe
