// The normalizer, the pre-tokenizer and the decoder of a tokenizer.json are each one step or a
// sequence of steps.
#pragma once

#include <functional>
#include <string>

#include "data/text/bpe/json_node.hpp"

namespace troupe::bpe {

/// Passes the steps of `node` in order, each with its type. Sequences, which may be nested, have
/// their steps in the list `key`. Throws std::runtime_error, a line with file and place, for too many.
void ForEachStep(const JsonNode& node, const std::string& key,
                 const std::function<void(const JsonNode& step, const JsonNode& type)>& sink);

}  // namespace troupe::bpe
