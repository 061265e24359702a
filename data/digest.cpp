#include "data/digest.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <openssl/evp.h>
#include <vector>

namespace troupe {
namespace {

/// So much of it is shown: enough that two files differ.
constexpr std::size_t kShownBytes = 8;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string Sha256(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (!file || !context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) return "";
  std::vector<char> bytes(std::size_t{1} << 20);
  while (file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())), file.gcount() > 0) {
    EVP_DigestUpdate(context.get(), bytes.data(), static_cast<std::size_t>(file.gcount()));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1) return "";
  std::string text;
  for (std::size_t i = 0; i < kShownBytes; ++i) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x", digest[i]);
    text += hex.data();
  }
  return text;
}

}  // namespace

std::string DataDigests(const Config& config) {
  const DataConfig& data = config.data;
  std::string lines;
  const auto add = [&lines](const std::string& key, const std::string& path) {
    const std::string digest = path.empty() ? "" : Sha256(path);
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
