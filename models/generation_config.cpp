#include "models/generation_config.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "files/strict_json.hpp"
#include "files/text_file.hpp"

namespace troupe {

static std::optional<nlohmann::json> ReadIfThere(const std::string& path) {
  constexpr int kDepth = 16;
  if (!WhyNotOpened(path).empty()) return std::nullopt;
  try {
    return ParseStrictJson(ReadWholeFile(path), "the file", kDepth);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
}

static std::vector<std::int64_t> EndTokensIn(const nlohmann::json& object) {
  std::vector<std::int64_t> tokens;
  const auto ids = object.find("eos_token_id");
  if (ids == object.end()) return tokens;
  const auto take = [&tokens](const nlohmann::json& id) {
    if (id.is_number_integer()) tokens.push_back(id.get<std::int64_t>());
  };
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
    const std::vector<std::int64_t> tokens = EndTokensIn(*generation);
    if (!tokens.empty()) return tokens;
  }
  const auto config = ReadIfThere(path("config.json"));
  if (!config) return {};
  std::vector<std::int64_t> tokens = EndTokensIn(*config);
  const auto text = config->find("text_config");
  if (tokens.empty() && text != config->end() && text->is_object()) return EndTokensIn(*text);
  return tokens;
}

}  // namespace troupe
