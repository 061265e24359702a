#include "models/generation_config.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "kinds/foreign.hpp"

namespace troupe {

static std::optional<nlohmann::json> ReadIfThere(const std::string& path) {
  constexpr int kDepth = 16;
  if (!WhyNotOpened(path).empty()) return std::nullopt;
  try {
    return ParseStrictJson(ReadWholeFile(path), "the file", kDepth);
  } catch (const std::runtime_error& error) {
    throw ModelFolderError(path + ": " + error.what());
  }
}

static std::vector<std::int64_t> EndTokensIn(const nlohmann::json& object,
                                             const std::string& path) {
  constexpr std::uint64_t kMostTokens = 1U << 31U;
  std::vector<std::int64_t> tokens;
  const auto ids = object.find("eos_token_id");
  if (ids == object.end()) return tokens;
  const auto take = [&](const nlohmann::json& id) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMostTokens) {
      throw ModelFolderError(path + ": eos_token_id: expected a token or a list of them, got " +
                             QuoteText(ids->dump()));
    }
    tokens.push_back(id.get<std::int64_t>());
  };
  if (ids->is_null()) return tokens;
  if (ids->is_array()) {
    for (const nlohmann::json& id : *ids) take(id);
  } else {
    take(*ids);
  }
  return tokens;
}

std::vector<std::int64_t> EndTokensOf(const std::string& folder) {
  const auto path = [&](const char* name) {
    return (std::filesystem::path(folder) / name).string();
  };
  if (const auto generation = ReadIfThere(path("generation_config.json"))) {
    const std::vector<std::int64_t> tokens =
        EndTokensIn(*generation, path("generation_config.json"));
    if (!tokens.empty()) return tokens;
  }
  const auto config = ReadIfThere(path("config.json"));
  if (!config) return {};
  std::vector<std::int64_t> tokens = EndTokensIn(*config, path("config.json"));
  const auto text = config->find("text_config");
  if (tokens.empty() && text != config->end() && text->is_object())
    return EndTokensIn(*text, path("config.json"));
  return tokens;
}

}  // namespace troupe
