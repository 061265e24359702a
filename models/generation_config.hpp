// How transformers ends the answers of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Returns `eos_token_id` of generation_config.json, a number or a list of them, else that of
/// config.json or its text_config. Empty if none states it. Throws ModelFolderError if one of them
/// cannot be used.
std::vector<std::int64_t> EndTokensOf(const std::string& folder);

}  // namespace troupe
