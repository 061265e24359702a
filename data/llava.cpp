#include "data/llava.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace troupe {
namespace {

using nlohmann::json;

/// A row is {"conversations": [{"from": ...}]}: anything much deeper is not a data set.
constexpr int kMaxDepth = 16;

std::string Quoted(std::string_view text) {
  // Dumping escapes newlines and control characters, so that an error stays one line.
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string RowName(const std::string& file, std::int64_t index, const std::string& id) {
  return file + ": row " + std::to_string(index) + (id.empty() ? "" : " (id " + Quoted(id) + ")");
}

std::string Describe(const json& value) {
  if (value.is_string()) return "the string " + Quoted(value.get_ref<const std::string&>());
  return value.is_null() ? "null" : std::string("a value of type ") + value.type_name();
}

/// Why `image` may not be opened, or nothing. A data set must not name files outside its folder;
/// links inside it are the user's own and are followed.
std::string PathFault(const std::string& image) {
  const std::filesystem::path path(image);
  if (image.empty()) return "expected a path, got an empty one";
  if (image.find('\0') != std::string::npos) return "a path with a zero byte is not allowed";
  if (path.is_absolute()) return "expected a relative path, got the absolute one " + Quoted(image);
  if (std::find(path.begin(), path.end(), "..") != path.end()) {
    return "a path with \"..\" is not allowed: " + Quoted(image);
  }
  return {};
}

/// Turns the JSON of one row into a LlavaRow; throws std::runtime_error with the reason alone.
class RowReader {
 public:
  RowReader(const json& value, const std::vector<InputConfig>& encoders)
      : value_(value), encoders_(encoders) {}

  std::string Id() const {
    const auto id = value_.find("id");
    if (id == value_.end()) throw std::runtime_error("id: expected a string, found none");
    if (id->is_number_integer()) return id->dump();
    if (!id->is_string() || id->get_ref<const std::string&>().empty()) {
      throw std::runtime_error("id: expected a string, got " + Describe(*id));
    }
    return id->get<std::string>();
  }

  std::vector<Turn> Turns() const {
    const auto list = value_.find("conversations");
    if (list == value_.end() || !list->is_array()) {
      throw std::runtime_error("conversations: expected a list of turns, " +
                               (list == value_.end() ? "found none" : "got " + Describe(*list)));
    }
    std::vector<Turn> turns;
    for (const json& turn : *list) turns.push_back(ReadTurn(turn, turns.size()));
    if (std::none_of(turns.begin(), turns.end(), [](const Turn& turn) { return turn.answer; })) {
      throw std::runtime_error(
          "conversations: expected at least one turn from \"gpt\", found none");
    }
    return turns;
  }

  std::vector<std::vector<std::string>> Images(const std::vector<Turn>& turns) const {
    std::vector<std::size_t> num_placeholders(encoders_.size());
    for (const Turn& turn : turns) {
      for (const TextPiece& piece : SplitAtPlaceholders(turn.text, encoders_)) {
        if (piece.encoder >= 0) ++num_placeholders[static_cast<std::size_t>(piece.encoder)];
      }
    }
    std::vector<std::vector<std::string>> images;
    for (std::size_t i = 0; i < encoders_.size(); ++i) {
      images.push_back(Files(encoders_[i].field));
      if (images[i].size() == num_placeholders[i]) continue;
      throw std::runtime_error(encoders_[i].field +
                               ": the number of files and of placeholders must be the same, got " +
                               std::to_string(images[i].size()) + " in the field and " +
                               std::to_string(num_placeholders[i]) + " times " +
                               Quoted(encoders_[i].placeholder) + " in the text");
    }
    return images;
  }

 private:
  static Turn ReadTurn(const json& turn, std::size_t index) {
    const std::string where = "conversations: turn " + std::to_string(index) + ": ";
    const auto member = [&](const char* key) -> const std::string& {
      if (!turn.is_object()) throw std::runtime_error(where + "expected {from, value}");
      const auto found = turn.find(key);
      if (found == turn.end()) throw std::runtime_error(where + "\"" + key + "\" is missing");
      if (!found->is_string()) {
        throw std::runtime_error(where + key + ": expected a string, got " + Describe(*found));
      }
      return found->get_ref<const std::string&>();
    };
    const std::string& from = member("from");
    if (from != "human" && from != "gpt") {
      throw std::runtime_error(where + "from: expected \"human\" or \"gpt\", got " + Quoted(from));
    }
    return {from == "gpt", member("value")};
  }

  std::vector<std::string> Files(const std::string& field) const {
    const auto found = value_.find(field);
    if (found == value_.end() || found->is_null()) return {};
    std::vector<std::string> files;
    const auto add = [&](const json& file) {
      if (!file.is_string()) {
        throw std::runtime_error(field + ": expected a path or a list of paths, got " +
                                 Describe(file));
      }
      const std::string& path = file.get_ref<const std::string&>();
      const std::string fault = PathFault(path);
      if (!fault.empty()) throw std::runtime_error(field + ": " + fault);
      files.push_back(path);
    };
    if (found->is_array()) {
      std::for_each(found->begin(), found->end(), add);
    } else {
      add(*found);
    }
    return files;
  }

  const json& value_;
  const std::vector<InputConfig>& encoders_;
};

LlavaRow ReadRow(const std::string& file, std::int64_t index, const json& value,
                 const std::vector<InputConfig>& encoders) {
  LlavaRow row;
  row.index = index;
  try {
    if (!value.is_object()) {
      throw std::runtime_error("expected {id, image, conversations}, got " + Describe(value));
    }
    const RowReader reader(value, encoders);
    row.id = reader.Id();
    row.turns = reader.Turns();
    row.images = reader.Images(row.turns);
  } catch (const std::runtime_error& error) {
    throw DataError(RowName(file, index, row.id) + ": " + error.what());
  }
  return row;
}

/// The parser's words without the library's tag in front.
std::string ParserText(const json::exception& error) {
  const std::string text = error.what();
  const std::size_t tag_end = text.find("] ");
  return tag_end == std::string::npos ? text : text.substr(tag_end + 2);
}

}  // namespace

std::string LlavaSet::PathOf(const std::string& image) const {
  return (std::filesystem::path(file).parent_path() / image).string();
}

std::string LlavaSet::NameOf(const LlavaRow& row) const { return RowName(file, row.index, row.id); }

std::vector<TextPiece> SplitAtPlaceholders(std::string_view text,
                                           const std::vector<InputConfig>& encoders) {
  std::vector<TextPiece> pieces;
  while (!text.empty()) {
    std::size_t first = std::string_view::npos;
    int encoder = -1;
    std::size_t length = 0;
    for (std::size_t i = 0; i < encoders.size(); ++i) {
      const std::string& placeholder = encoders[i].placeholder;
      const std::size_t at = placeholder.empty() ? text.npos : text.find(placeholder);
      if (at == text.npos || at > first || (at == first && placeholder.size() <= length)) continue;
      first = at;
      encoder = static_cast<int>(i);
      length = placeholder.size();
    }
    if (first != 0) pieces.push_back({text.substr(0, first), -1});
    if (encoder < 0) break;
    pieces.push_back({text.substr(first, length), encoder});
    text.remove_prefix(first + length);
  }
  return pieces;
}

LlavaSet ReadLlava(const std::string& file, const std::vector<InputConfig>& encoders) {
  // The type first: opening a pipe would wait for somebody to write into it.
  std::error_code code;
  const bool regular = std::filesystem::is_regular_file(file, code);
  std::ifstream stream;
  if (regular) stream.open(file, std::ios::binary);
  if (!regular || !stream) {
    throw DataError(file + ": expected a JSON file, found none that can be read");
  }
  LlavaSet set{file, {}};
  // Rows are taken out while the file is parsed, so that only one of them is ever held as JSON.
  const auto take_row = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kMaxDepth) {
      throw DataError(RowName(file, std::ssize(set.rows), "") + ": nested too deeply");
    }
    if (depth == 0 && event != json::parse_event_t::array_start &&
        event != json::parse_event_t::array_end) {
      throw DataError(file + ": expected a list of rows, got something else");
    }
    const bool ends = event == json::parse_event_t::object_end ||
                      event == json::parse_event_t::array_end ||
                      event == json::parse_event_t::value;
    if (depth != 1 || !ends) return true;
    set.rows.push_back(ReadRow(file, std::ssize(set.rows), value, encoders));
    return false;
  };
  try {
    [[maybe_unused]] const json emptied_list = json::parse(stream, take_row);
  } catch (const json::exception& error) {
    throw DataError(file + ": " + ParserText(error));
  }
  return set;
}

}  // namespace troupe
