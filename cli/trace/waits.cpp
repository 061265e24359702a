#include "cli/trace/waits.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "files/text_file.hpp"
#include "trace/run_trace.hpp"

namespace troupe {
namespace {

using Json = nlohmann::json;

std::string ArticleAnd(const Json& json) {
  const std::string type = json.type_name();
  if (type == "null") return type;
  return (type == "object" || type == "array" ? "an " : "a ") + type;
}

/// The members of one object of the file; `where` is its place for errors: "actor 3, wait 0".
class Members {
 public:
  Members(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) Fail("expected an object, got " + ArticleAnd(json));
  }

  std::string NeededText(const char* key) const {
    if (!json_.contains(key)) Fail("there is no \"" + std::string(key) + "\"");
    return Text(key);
  }
  /// Returns "" if the member is missing; the next three likewise.
  std::string Text(const char* key) const {
    const Json* const value = Find(key, "a string", &Json::is_string);
    return value == nullptr ? "" : value->get<std::string>();
  }
  std::int64_t Number(const char* key) const {
    const Json* const value = Find(key, "a whole number", &Json::is_number_integer);
    return value == nullptr ? 0 : value->get<std::int64_t>();
  }
  std::uint64_t Count(const char* key) const {
    const Json* const value = Find(key, "a count", &Json::is_number_unsigned);
    return value == nullptr ? 0 : value->get<std::uint64_t>();
  }
  bool Truth(const char* key) const {
    const Json* const value = Find(key, "a boolean", &Json::is_boolean);
    return value != nullptr && value->get<bool>();
  }
  /// Calls `each` for the elements of a list.
  template <class Each>
  void ForEach(const char* key, const char* name, Each each) const {
    const Json* const list = Find(key, "an array", &Json::is_array);
    if (list == nullptr) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
      each(Members((*list)[i], where_ + ", " + name + " " + std::to_string(i)));
    }
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::invalid_argument(where_ + ": " + what);
  }
  const Json* Find(const char* key, const char* type, bool (Json::*is)() const noexcept) const {
    const auto found = json_.find(key);
    if (found == json_.end()) return nullptr;
    if (!((*found).*is)()) {
      Fail("\"" + std::string(key) + "\": expected " + type + ", got " + ArticleAnd(*found));
    }
    return &*found;
  }

  const Json& json_;
  std::string where_;
};

/// Returns kNone for an unknown word.
WaitUnit UnitOf(const std::string& word) {
  using enum WaitUnit;
  for (const WaitUnit unit : {kMicrobatch, kWindow, kRound, kMicrobatchOfRound}) {
    if (word == ToString(unit)) return unit;
  }
  return kNone;
}

ActorWaits ActorOf(const Members& members) {
  ActorWaits actor;
  actor.who = members.NeededText("who");
  actor.node = members.Text("node");
  actor.busy = members.Truth("busy");
  members.ForEach("waits", "wait", [&](const Members& wait) {
    actor.waits.push_back({wait.NeededText("what"), UnitOf(wait.Text("unit")),
                           wait.Number("number"), wait.Text("whom"), wait.Count("request"),
                           wait.Text("message"), wait.Truth("on_its_way")});
  });
  members.ForEach("owes", "debt", [&](const Members& owed) {
    actor.owes.push_back({owed.NeededText("to"), owed.Count("request")});
  });
  return actor;
}

}  // namespace

std::vector<ActorWaits> ParseWaits(const std::string& text) {
  Json all;
  try {
    all = Json::parse(text);
  } catch (const Json::parse_error& e) {
    const bool cut = e.byte > text.size();
    throw std::invalid_argument(text.empty() ? "expected JSON, the file is empty"
                                : cut        ? "expected JSON, it ends in the middle"
                                             : "expected JSON, byte " + std::to_string(e.byte) +
                                            " is malformed");
  } catch (const Json::out_of_range&) {
    throw std::invalid_argument("expected JSON, a number in it is too large");
  }
  if (!all.is_array()) {
    throw std::invalid_argument("expected an array of waits, got " + ArticleAnd(all));
  }
  if (all.empty()) throw std::invalid_argument("expected waits, got an empty array");
  std::vector<ActorWaits> actors;
  for (std::size_t i = 0; i < all.size(); ++i) {
    actors.push_back(ActorOf(Members(all[i], "actor " + std::to_string(i))));
  }
  return actors;
}

WaitsFile ReadWaits(const std::string& run_directory, const std::string& name) {
  WaitsFile file;
  file.path = NewestTraceFolder(run_directory) + "/" + name;
  std::error_code ignored;
  file.exists = std::filesystem::exists(file.path, ignored);
  if (!file.exists) return file;
  try {
    file.actors = ParseWaits(ReadWholeFile(file.path));
  } catch (const std::invalid_argument& e) {
    file.problem = file.path + ": " + e.what();
  } catch (const std::runtime_error& e) {
    file.problem = e.what();
  }
  return file;
}

}  // namespace troupe
