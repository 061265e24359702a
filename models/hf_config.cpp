#include "models/hf_config.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/strict_json.hpp"
#include "files/text_file.hpp"

namespace troupe {

using Json = nlohmann::json;

namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
/// The file, text_config, rope_scaling, a list in it; some files nest quantisation deeper.
constexpr int kMaxDepth = 8;

std::string ReadText(const std::string& path) {
  TextFile file = ReadTextFile(path, kMaxBytes, "expected at most 1 MiB");
  if (!file.failure.empty()) throw ModelFolderError(path + ": " + file.failure);
  return std::move(file.text);
}

}  // namespace

struct HfConfig::File {
  explicit File(std::string file) : path(std::move(file)) {}

  std::string path;
  Json root;
  std::vector<DefaultedKey> defaulted;
};

struct HfConfig::Object {
  const Json* json;    ///< inside the file
  std::string prefix;  ///< "text_config.", or ""

  const Json* Find(const std::string& key) const {
    const auto found = json->find(key);
    return found == json->end() || found->is_null() ? nullptr : &*found;
  }
};

HfConfig::HfConfig(std::shared_ptr<File> file, std::unique_ptr<const Object> object)
    : file_(std::move(file)), object_(std::move(object)) {}

HfConfig::HfConfig(HfConfig&&) noexcept = default;
HfConfig::~HfConfig() = default;

HfConfig HfConfig::Read(const std::string& folder, const std::string& name) {
  auto file = std::make_shared<File>((std::filesystem::path(folder) / name).string());
  std::error_code unknown;
  if (!std::filesystem::is_directory(folder, unknown)) {
    throw ModelFolderError(folder + ": expected a folder on this machine, found none");
  }
  const std::string text = ReadText(file->path);
  try {
    file->root = ParseStrictJson(text, "the file", kMaxDepth);
  } catch (const std::runtime_error& error) {
    throw ModelFolderError(file->path + ": " + error.what());
  }
  const Json* const root = &file->root;
  return {std::move(file), std::make_unique<const Object>(Object{root, ""})};
}

bool HfConfig::Has(const std::string& key) const { return object_->Find(key) != nullptr; }

bool HfConfig::IsNull(const std::string& key) const {
  const auto found = object_->json->find(key);
  return found != object_->json->end() && found->is_null();
}

bool HfConfig::IsEmptyList(const std::string& key) const {
  const Json* const value = object_->Find(key);
  return value == nullptr || value->is_null() || (value->is_array() && value->empty());
}

bool HfConfig::IsObject(const std::string& key) const {
  const Json* const value = object_->Find(key);
  return value != nullptr && value->is_object();
}

std::int64_t HfConfig::Integer(const std::string& key, std::int64_t otherwise) const {
  const Json* const value = object_->Find(key);
  if (value == nullptr) {
    NoteDefault(key, std::to_string(otherwise));
    return otherwise;
  }
  // Some writers turn 8192 into 8192.0.
  if (value->is_number_float() && std::abs(value->get<double>()) < 1e15 &&
      std::trunc(value->get<double>()) == value->get<double>()) {
    return static_cast<std::int64_t>(value->get<double>());
  }
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<std::uint64_t>() < (1ULL << 62));
  if (!fits) RefuseType(key, "a whole number");
  return value->get<std::int64_t>();
}

double HfConfig::Number(const std::string& key, double otherwise) const {
  const Json* const value = object_->Find(key);
  if (value == nullptr) {
    NoteDefault(key, Json(otherwise).dump());
    return otherwise;
  }
  if (!value->is_number()) RefuseType(key, "a number");
  return value->get<double>();
}

bool HfConfig::Flag(const std::string& key, bool otherwise) const {
  const Json* const value = object_->Find(key);
  if (value == nullptr) {
    NoteDefault(key, otherwise ? "true" : "false");
    return otherwise;
  }
  if (!value->is_boolean()) RefuseType(key, "true or false");
  return value->get<bool>();
}

std::string HfConfig::Word(const std::string& key, const std::string& otherwise) const {
  const Json* const value = object_->Find(key);
  if (value == nullptr) {
    NoteDefault(key, QuoteText(otherwise));
    return otherwise;
  }
  if (!value->is_string()) RefuseType(key, "a string");
  return value->get<std::string>();
}

std::array<double, 3> HfConfig::Channels(const std::string& key,
                                         const std::array<double, 3>& otherwise) const {
  const Json* const value = object_->Find(key);
  if (value == nullptr) {
    NoteDefault(key, Json(otherwise).dump());
    return otherwise;
  }
  const auto number = [](const Json& item) { return item.is_number(); };
  if (number(*value)) {
    const auto same = value->get<double>();
    return {same, same, same};
  }
  const bool three = value->is_array() && value->size() == otherwise.size() &&
                     std::all_of(value->begin(), value->end(), number);
  if (!three) RefuseType(key, "three numbers");
  return value->get<std::array<double, 3>>();
}

std::vector<IntegerPair> HfConfig::Pairs(const std::string& key,
                                         const std::vector<IntegerPair>& otherwise) const {
  const Json* const value = object_->Find(key);
  if (value == nullptr) {
    NoteDefault(key, Json(otherwise).dump());
    return otherwise;
  }
  const auto is_pair = [](const Json& item) {
    return item.is_array() && item.size() == 2 && item[0].is_number_integer() &&
           item[1].is_number_integer();
  };
  const bool pairs =
      value->is_array() && !value->empty() && std::all_of(value->begin(), value->end(), is_pair);
  if (!pairs) RefuseType(key, "a list of pairs of whole numbers");
  return value->get<std::vector<IntegerPair>>();
}

std::unique_ptr<const ForeignConfig> HfConfig::Part(const std::string& key) const {
  const Json* const value = object_->Find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) RefuseType(key, "an object");
  return std::unique_ptr<const HfConfig>(new HfConfig(
      file_, std::make_unique<const Object>(Object{value, object_->prefix + key + "."})));
}

std::string HfConfig::NameOf(const std::string& key) const {
  return file_->path + ": " + object_->prefix + key;
}

void HfConfig::RefuseType(const std::string& key, const char* expected) const {
  Refuse(key,
         std::string("expected ") + expected + ", got " +
             QuoteText(object_->Find(key)->dump(-1, ' ', true, Json::error_handler_t::replace)));
}

void HfConfig::NoteDefault(const std::string& key, std::string value) const {
  const std::string dotted = object_->prefix + key;
  if (std::ranges::find(file_->defaulted, dotted, &DefaultedKey::key) == file_->defaulted.end()) {
    file_->defaulted.push_back({dotted, std::move(value)});
  }
}

const std::string& HfConfig::path() const { return file_->path; }
std::vector<DefaultedKey> HfConfig::defaulted() const { return file_->defaulted; }

}  // namespace troupe
