#include "data/digest.hpp"

#include "files/sha256.hpp"

namespace troupe {

/// Number of hexadecimal digits to show, enough to distinguish files.
static constexpr std::size_t kShownDigits = 16;

std::string DataDigests(const Config& config) {
  const DataConfig& data = config.data;
  std::string lines;
  const auto add = [&lines](const std::string& key, const std::string& path) {
    const auto digest = Sha256OfFile(path);
    if (digest) lines += key + " (contents) = sha256 " + digest->substr(0, kShownDigits) + "\n";
  };
  add("data.train", data.train);
  add("data.held_out", data.held_out);
  if (config.schedule.kind == ScheduleKind::kCsv) add("schedule.file", config.schedule.file);
  constexpr std::size_t kKind = sizeof("sentencepiece:") - 1;
  if (data.tokenizer.rfind("sentencepiece:", 0) == 0) {
    add("data.tokenizer", data.tokenizer.substr(kKind));
  }
  return lines;
}

}  // namespace troupe
