#include "data/llava_row.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/llava.hpp"

namespace troupe {
namespace {

using nlohmann::json;

std::string Describe(const json& value) {
  if (value.is_string()) return "the string " + JsonText(value.get_ref<const std::string&>());
  return value.is_null() ? "null" : std::string("a value of type ") + value.type_name();
}

/// Why `image` may not be opened, or nothing. A list must not name files outside its folder, since
/// lists are copied from strangers; links inside it are the user's own and are followed.
std::string PathFault(const std::string& image) {
  const std::filesystem::path path(image);
  const char* const advice = ": images lie below the list's folder; a link to theirs may lie there";
  if (image.empty()) return "expected a path, got an empty one";
  if (image.find('\0') != std::string::npos) return "a path with a zero byte is not allowed";
  if (image.find("://") != std::string::npos || image.rfind("data:", 0) == 0) {
    return "expected a path, got the URL " + JsonText(image.substr(0, 80)) + ": download it first";
  }
  if (path.is_absolute()) {
    return "expected a relative path, got the absolute one " + JsonText(image) + advice;
  }
  if (std::find(path.begin(), path.end(), "..") != path.end()) {
    return "a path with \"..\" is not allowed: " + JsonText(image) + advice;
  }
  return {};
}

/// Reads the members of one JSON object; errors begin with `where`.
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const json* Find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  const std::string& Text(const char* key) const {
    const json* found = Find(key);
    if (found == nullptr) Fail('"' + std::string(key) + "\" is missing");
    if (!found->is_string())
      Fail(key + std::string(": expected a string, got ") + Describe(*found));
    return found->get_ref<const std::string&>();
  }
  [[noreturn]] void Fail(const std::string& reason) const {
    throw std::runtime_error(where_ + reason);
  }

 private:
  const json& object_;
  std::string where_;
};

class RowReader {
 public:
  RowReader(const json& value, const std::vector<InputConfig>& encoders)
      : value_(value), encoders_(encoders) {}

  std::string Id() const {
    const auto id = value_.find("id");
    if (id == value_.end()) return {};
    if (id->is_number_integer()) return id->dump();
    if (!id->is_string()) throw std::runtime_error("id: expected a string, got " + Describe(*id));
    return id->get<std::string>();
  }

  void ReadTurns() {
    const bool conversations = value_.contains("conversations");
    const bool messages = value_.contains("messages");
    const bool caption = value_.contains("caption");
    if (conversations + messages + caption != 1) {
      throw std::runtime_error(
          std::string("expected one of \"conversations\", \"messages\" and \"caption\", found ") +
          (conversations + messages + caption == 0 ? "none" : "several"));
    }
    if (caption) return ReadCaption();
    ReadList(conversations ? "conversations" : "messages");
  }

  std::vector<std::vector<std::string>> Images() const {
    std::vector<std::size_t> num_placeholders(encoders_.size());
    for (const Turn& turn : turns) {
      for (const TextPiece& piece : SplitAtPlaceholders(turn.text, encoders_)) {
        if (piece.encoder >= 0) ++num_placeholders[static_cast<std::size_t>(piece.encoder)];
      }
    }
    std::vector<std::vector<std::string>> images;
    for (std::size_t i = 0; i < encoders_.size(); ++i) {
      images.push_back(FilesOf(encoders_[i].field));
      if (images[i].size() == num_placeholders[i]) continue;
      throw std::runtime_error(encoders_[i].field +
                               ": the number of files and of placeholders must be the same, got " +
                               std::to_string(images[i].size()) + " in the field and " +
                               std::to_string(num_placeholders[i]) + " times " +
                               JsonText(encoders_[i].placeholder) + " in the text");
    }
    return images;
  }

  std::vector<Turn> turns;

 private:
  void ReadList(const std::string& key) {
    const json& list = value_.at(key);
    if (!list.is_array()) {
      throw std::runtime_error(key + ": expected a list of turns, got " + Describe(list));
    }
    for (const json& turn : list) ReadTurn(key, turn);
    if (std::none_of(turns.begin(), turns.end(), [](const Turn& turn) { return turn.answer; })) {
      throw std::runtime_error(key + ": expected at least one turn from \"" +
                               (key == "messages" ? "assistant" : "gpt") + "\", found none");
    }
  }

  void ReadTurn(const std::string& key, const json& turn) {
    const bool openai = key == "messages";
    const Members members(turn, key + ": turn " + std::to_string(turns.size()) + ": ");
    if (!turn.is_object()) {
      members.Fail(openai ? "expected {role, content}" : "expected {from, value}");
    }
    const char* const role_key = openai ? "role" : "from";
    const std::string& role = members.Text(role_key);
    const bool answer = role == (openai ? "assistant" : "gpt");
    const bool system = role == "system" && turns.empty();
    if (!answer && !system && role != (openai ? "user" : "human")) {
      members.Fail(role_key +
                   std::string(openai ? ": expected \"user\", \"assistant\""
                                      : ": expected \"human\", \"gpt\"") +
                   " or, in the first turn, \"system\", got " + JsonText(role));
    }
    const json* content = members.Find("content");
    if (openai && content != nullptr && content->is_array()) {
      turns.push_back({answer, PartsText(*content, members)});
    } else {
      turns.push_back({answer, members.Text(openai ? "content" : "value")});
    }
  }

  /// The text of a list of parts; the paths of its images are noted.
  std::string PartsText(const json& parts, const Members& turn) {
    std::string text;
    for (const json& part : parts) {
      if (!part.is_object()) turn.Fail("content: expected {type, ...}, got " + Describe(part));
      const Members members(part, "content: ");
      const std::string& type = members.Text("type");
      if (type == "text") {
        text += members.Text("text");
      } else if (type == "image" || type == "image_url") {
        text += OnlyEncoder("a part of type \"" + type + "\"").placeholder;
        AddPartImage(members);
      } else {
        turn.Fail("content: expected parts of type \"text\", \"image\" or \"image_url\", got " +
                  JsonText(type));
      }
    }
    return text;
  }

  /// {"image": PATH}, {"image_url": {"url": PATH}}; without either the row's field has the path.
  void AddPartImage(const Members& part) {
    if (const json* url = part.Find("image_url"); url != nullptr && url->is_object()) {
      part_images_.push_back(CheckedPath("image_url", Members(*url, "image_url: ").Text("url")));
      return;
    }
    for (const char* key : {"image_url", "image", "path"}) {
      if (part.Find(key) == nullptr) continue;
      part_images_.push_back(CheckedPath(key, part.Text(key)));
      return;
    }
  }

  void ReadCaption() {
    const InputConfig& encoder = OnlyEncoder("\"caption\"");
    const std::string& caption = Members(value_, "").Text("caption");
    turns = {{false, encoder.placeholder}, {true, caption}};
  }

  /// `what` does not say which encoder its image is for.
  const InputConfig& OnlyEncoder(const std::string& what) const {
    if (encoders_.size() == 1) return encoders_.front();
    throw std::runtime_error(what + " needs a model with one encoder, this one has " +
                             std::to_string(encoders_.size()) +
                             ": use \"conversations\" with a placeholder per encoder");
  }

  static std::string CheckedPath(const std::string& field, const std::string& path) {
    const std::string fault = PathFault(path);
    if (!fault.empty()) throw std::runtime_error(field + ": " + fault);
    return path;
  }

  std::vector<std::string> FilesOf(const std::string& field) const {
    const auto found = value_.find(field);
    if (found == value_.end() || found->is_null()) return part_images_;
    std::vector<std::string> files = part_images_;
    const auto add = [&](const json& file) {
      if (!file.is_string()) {
        throw std::runtime_error(field + ": expected a path or a list of paths, got " +
                                 Describe(file));
      }
      files.push_back(CheckedPath(field, file.get_ref<const std::string&>()));
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
  std::vector<std::string> part_images_;  ///< of parts in "messages", in their order
};

}  // namespace

std::string JsonText(std::string_view text) {
  // Dumping escapes newlines and control characters.
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

void ReadRow(const json& value, const std::vector<InputConfig>& encoders, LlavaRow& row) {
  if (!value.is_object()) {
    throw std::runtime_error("expected an object like {id, image, conversations}, got " +
                             Describe(value));
  }
  RowReader reader(value, encoders);
  row.id = reader.Id();
  reader.ReadTurns();
  row.images = reader.Images();
  row.turns = std::move(reader.turns);
}

}  // namespace troupe
