// One row of a data set: from JSON to turns and image paths.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"

namespace troupe {

/// One turn of a conversation.
struct Turn {
  bool answer = false;  ///< written by the model, not by the reader or the system
  std::string text;
};

/// One sample as the file holds it.
struct LlavaRow {
  std::int64_t index = 0;  ///< place in the file, from 0
  std::string id;          ///< may be empty
  /// By encoder, then in the order of its placeholders: paths relative to the list's folder.
  std::vector<std::vector<std::string>> images;
  std::vector<Turn> turns;
  bool usable = true;     ///< false: the row has a fault and holds nothing
  std::int64_t line = 0;  ///< in a file with one row a line, from 1; else 0
};

/// Fills `row` from one of three forms, which docs/data.md describes: "conversations", "messages"
/// or "caption". The id is filled even if the rest cannot be. Throws std::runtime_error with the
/// reason alone.
void ReadRow(const nlohmann::json& value, const std::vector<InputConfig>& encoders, LlavaRow& row);

/// `text` as a JSON string: an error that quotes it stays one line.
std::string JsonText(std::string_view text);

}  // namespace troupe
