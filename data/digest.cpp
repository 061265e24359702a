#include "data/digest.hpp"

#include <fstream>
#include <vector>

#include "files/sha256.hpp"

namespace troupe {
namespace {

/// Number of hexadecimal digits to show, enough to distinguish files.
constexpr std::size_t kShownDigits = 16;

std::string DigestOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  Sha256 sum;
  std::vector<char> bytes(std::size_t{1} << 20);
  while (file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())), file.gcount() > 0) {
    sum.Update(std::as_bytes(std::span(bytes)).first(static_cast<std::size_t>(file.gcount())));
  }
  return sum.Hex().substr(0, kShownDigits);
}

}  // namespace

std::string DataDigests(const Config& config) {
  const DataConfig& data = config.data;
  std::string lines;
  const auto add = [&lines](const std::string& key, const std::string& path) {
    const std::string digest = path.empty() ? "" : DigestOf(path);
    if (!digest.empty()) lines += key + " (contents) = sha256 " + digest + "\n";
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
