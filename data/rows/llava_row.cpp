#include "data/rows/llava_row.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/rows/llava.hpp"

namespace troupe {
namespace {

using nlohmann::json;

std::string Describe(const json& value) {
  if (value.is_string()) return "the string " + JsonText(value.get_ref<const std::string&>());
  return value.is_null() ? "null" : std::string("a value of type ") + value.type_name();
}

/// Returns `file`, the value of `field`, or throws if it must not be opened. `word` names its
/// contents. A list must not name files outside its folder, since lists may come from anywhere.
/// Links inside the folder are the user's and are followed.
std::string CheckedPath(const std::string& field, const std::string& file,
                        const std::string& word) {
  const auto refuse = [&](const std::string& reason) {
    throw std::runtime_error(field + ": " + reason);
  };
  const std::filesystem::path path(file);
  const std::string advice =
      ": " + word + "s lie below the list's folder; a link to theirs may lie there";
  if (file.empty()) refuse("expected a path, got an empty one");
  if (file.find('\0') != std::string::npos) refuse("a path with a zero byte is not allowed");
  if (file.find("://") != std::string::npos || file.starts_with("data:")) {
    refuse("expected a path, got the URL " + JsonText(file.substr(0, 80)) + ": download it first");
  }
  if (path.is_absolute()) {
    refuse("expected a relative path, got the absolute one " + JsonText(file) + advice);
  }
  if (std::ranges::find(path, "..") != path.end()) {
    refuse("a path with \"..\" is not allowed: " + JsonText(file) + advice);
  }
  return file;
}

/// The words of a list of turns.
struct TurnForm {
  std::string list;
  std::string role;
  std::string text;
  std::string reader;
  std::string model;
};
const TurnForm kConversations = {"conversations", "from", "value", "human", "gpt"};
const TurnForm kMessages = {"messages", "role", "content", "user", "assistant"};

/// Reads the members of one JSON object; errors begin with `where`.
class Members {
 public:
  Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const json* Find(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  const std::string& Text(const std::string& key) const {
    const json* found = Find(key);
    if (found == nullptr) Fail('"' + key + "\" is missing");
    if (!found->is_string()) Fail(key + ": expected a string, got " + Describe(*found));
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
  RowReader(const json& value, const std::vector<RowField>& fields)
      : value_(value), fields_(fields), part_files_(fields.size()) {}

  std::string Id() const {
    const auto id = value_.find("id");
    if (id == value_.end()) return {};
    if (id->is_number_integer()) return id->dump();
    if (!id->is_string()) {
      throw std::runtime_error("id: expected a string or a whole number of 64 bits, got " +
                               Describe(*id));
    }
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
    ReadList(conversations ? kConversations : kMessages);
  }

  std::vector<std::vector<std::string>> Files() const {
    std::vector<std::size_t> num_placeholders(fields_.size());
    for (const Turn& turn : turns) {
      for (const TextPiece& piece : SplitAtPlaceholders(turn.text, fields_)) {
        if (piece.field >= 0) ++num_placeholders[static_cast<std::size_t>(piece.field)];
      }
    }
    std::vector<std::vector<std::string>> files = part_files_;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      AddFilesOf(fields_[i], files[i]);
      if (files[i].size() == num_placeholders[i]) continue;
      throw std::runtime_error(fields_[i].field +
                               ": the number of files and of placeholders must be the same, got " +
                               std::to_string(files[i].size()) + " in the field and " +
                               std::to_string(num_placeholders[i]) + " times " +
                               JsonText(fields_[i].placeholder) + " in the text");
    }
    return files;
  }

  std::vector<Turn> turns;

 private:
  void ReadList(const TurnForm& form) {
    const json& list = value_.at(form.list);
    if (!list.is_array()) {
      throw std::runtime_error(form.list + ": expected a list of turns, got " + Describe(list));
    }
    for (const json& turn : list) ReadTurn(form, turn);
    if (std::ranges::none_of(turns, &Turn::answer)) {
      throw std::runtime_error(form.list + ": expected at least one turn from \"" + form.model +
                               "\", found none");
    }
  }

  void ReadTurn(const TurnForm& form, const json& turn) {
    const Members members(turn, form.list + ": turn " + std::to_string(turns.size()) + ": ");
    if (!turn.is_object()) members.Fail("expected {" + form.role + ", " + form.text + "}");
    const std::string& role = members.Text(form.role);
    const bool answer = role == form.model;
    const bool system = role == "system" && turns.empty();
    if (!answer && !system && role != form.reader) {
      members.Fail(form.role + ": expected \"" + form.reader + "\", \"" + form.model +
                   "\" or, in the first turn, \"system\", got " + JsonText(role));
    }
    const json* content = members.Find("content");
    if (&form == &kMessages && content != nullptr && content->is_array()) {
      turns.push_back({answer, PartsText(*content, members), system});
    } else {
      turns.push_back({answer, members.Text(form.text), system});
    }
  }

  /// Returns the text of a list of parts, and collects the paths of its images.
  std::string PartsText(const json& parts, const Members& turn) {
    std::string text;
    for (const json& part : parts) {
      if (!part.is_object()) turn.Fail("content: expected {type, ...}, got " + Describe(part));
      const Members members(part, "content: ");
      const std::string& type = members.Text("type");
      if (type == "text") {
        text += members.Text("text");
      } else if (type == "image" || type == "image_url") {
        const std::size_t field = OnlyField("a part of type \"" + type + "\"", /*images=*/true);
        text += fields_[field].placeholder;
        AddPartImage(members, part_files_[field]);
      } else {
        turn.Fail("content: expected parts of type \"text\", \"image\" or \"image_url\", got " +
                  JsonText(type));
      }
    }
    return text;
  }

  /// Accepts {"image": PATH} and {"image_url": {"url": PATH}}. Without either, the row's field has
  /// the path.
  static void AddPartImage(const Members& part, std::vector<std::string>& images) {
    if (const json* url = part.Find("image_url"); url != nullptr && url->is_object()) {
      images.push_back(CheckedPath("image_url", Members(*url, "image_url: ").Text("url"), "image"));
      return;
    }
    for (const char* key : {"image_url", "image", "path"}) {
      if (part.Find(key) == nullptr) continue;
      images.push_back(CheckedPath(key, part.Text(key), "image"));
      return;
    }
  }

  void ReadCaption() {
    const RowField& field = fields_[OnlyField("\"caption\"", /*images=*/false)];
    const std::string& caption = Members(value_, "").Text("caption");
    turns = {{false, field.placeholder}, {true, caption}};
  }

  /// Returns the index of the only field; with `images`, of the only field of images. `what` is a
  /// row form that does not name the field of its file.
  std::size_t OnlyField(const std::string& what, bool images) const {
    const auto candidate = [&](const RowField& field) { return !images || field.word == "image"; };
    const auto count = std::count_if(fields_.begin(), fields_.end(), candidate);
    if (count == 1) {
      return static_cast<std::size_t>(std::find_if(fields_.begin(), fields_.end(), candidate) -
                                      fields_.begin());
    }
    throw std::runtime_error(what + " needs a model with one encoder" +
                             (count == std::ssize(fields_) ? "" : " of images") +
                             ", this one has " + std::to_string(count) +
                             ": use \"conversations\" with a placeholder per encoder");
  }

  void AddFilesOf(const RowField& field, std::vector<std::string>& files) const {
    const auto found = value_.find(field.field);
    if (found == value_.end() || found->is_null()) return;
    const auto add = [&](const json& file) {
      if (!file.is_string()) {
        throw std::runtime_error(field.field + ": expected a path or a list of paths, got " +
                                 Describe(file));
      }
      files.push_back(CheckedPath(field.field, file.get_ref<const std::string&>(), field.word));
    };
    if (found->is_array()) {
      std::for_each(found->begin(), found->end(), add);
    } else {
      add(*found);
    }
  }

  const json& value_;
  const std::vector<RowField>& fields_;
  /// By field: files of parts in "messages", in their order.
  std::vector<std::vector<std::string>> part_files_;
};

}  // namespace

std::string RowField::WithArticle() const {
  return (std::string("aeiou").find(word.front()) == std::string::npos ? "a " : "an ") + word;
}

std::string JsonText(std::string_view text) {
  // The dump escapes newlines and control characters.
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

void ReadRow(const json& value, const std::vector<RowField>& fields, LlavaRow& row) {
  if (!value.is_object()) {
    throw std::runtime_error("expected an object like {id, image, conversations}, got " +
                             Describe(value));
  }
  RowReader reader(value, fields);
  row.id = reader.Id();
  reader.ReadTurns();
  row.files = reader.Files();
  row.turns = std::move(reader.turns);
}

}  // namespace troupe
