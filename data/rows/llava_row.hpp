// One row of a data set: converts JSON to turns and paths of files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.hpp"
#include "data/rows/data_error.hpp"
#include "data/rows/item_file.hpp"

namespace troupe {

/// A field of rows that a module reads: its name, its placeholder, and the word for its items.
struct RowField : InputConfig {
  std::string word = "image";  ///< Field::word()

  std::string WithArticle() const;  ///< "an image"
};

/// One turn of a conversation.
struct Turn {
  bool answer = false;  ///< written by the model, not by the reader or the system
  std::string text;
  bool system = false;  ///< instructions for the whole conversation; only the first turn
  bool open = false;    ///< an answer that the model has yet to write; only the last turn
};

/// The list or the shard that rows come from.
struct RowOrigin {
  std::string file;
  std::string folder = {};  ///< of the files that rows name; "": that of `file`

  /// Returns the path at which a file that a row names can be opened.
  std::string PathOf(const std::string& name) const;
};

/// The files of a row that lie in its shard, by name.
using RowMembers = std::map<std::string, ItemFile, std::less<>>;

/// One sample as the file holds it.
struct LlavaRow {
  std::int64_t index = 0;  ///< place in the file, from 0
  std::string id;          ///< may be empty
  /// By field, in the order of its placeholders: paths relative to the list's folder, or members.
  std::vector<std::vector<std::string>> files;
  std::vector<Turn> turns;
  std::int64_t line = 0;  ///< in a file with one row a line, from 1; else 0
  std::shared_ptr<const RowMembers> members = nullptr;  ///< null: its files lie on disk

  /// Returns a file that the row names.
  ItemFile ItemOf(const RowOrigin& origin, const std::string& name) const;
  DataFault Fault(FaultKind kind, const std::string& reason) const {
    return {kind, index, id, reason, line};
  }
};

/// Fills `row` from one of the three forms in docs/data.md: "conversations", "messages" or
/// "caption". Fills the id even if the rest cannot be read. Throws std::runtime_error with only the
/// reason.
void ReadRow(const nlohmann::json& value, const std::vector<RowField>& fields, LlavaRow& row);

/// Returns `text` as a JSON string, so that an error that quotes it stays one line.
std::string JsonText(std::string_view text);

}  // namespace troupe
