// The tokenizer of a Hugging Face folder: tokenizer.json, and the roles of its special tokens in
// tokenizer_config.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.hpp"

namespace troupe {

/// Encoder k has the id of the added token placeholders[k]. Placeholders that the folder lacks get
/// the next free ids, in order, and then pad, if it has neither a pad_token nor a token "<pad>", as
/// transformers' conversion of LLaVA does: 32000 "<image>", 32001 "<pad>" for a Vicuna. Throws
/// std::runtime_error, a line with file and place, for files that cannot be used.
std::shared_ptr<const Tokenizer> OpenHfTokenizer(const std::string& folder,
                                                 const std::vector<std::string>& placeholders);

}  // namespace troupe
