#include "checkpoint/safetensors_header.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "checkpoint/strict_json.hpp"

namespace troupe {

namespace {

using Json = nlohmann::json;

constexpr const char* kMetadataKey = "__metadata__";
constexpr std::size_t kAlignment = 8;

std::string NameOf(const std::string& tensor) { return "tensor " + QuoteText(tensor); }

Metadata ParseMetadata(const Json& json) {
  if (!json.is_object()) FailReading("__metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) FailReading("__metadata__ " + QuoteText(key) + " is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// A list of non-negative integers below 2^63. The parser gives other numbers another type.
std::vector<std::int64_t> ParseIntegers(const Json& json, const std::string& where) {
  if (!json.is_array()) FailReading(where + " is not a list");
  std::vector<std::int64_t> numbers;
  for (const Json& item : json) {
    const bool fits = item.is_number_unsigned() && item.get<std::uint64_t>() <= INT64_MAX;
    if (!fits) FailReading(where + " holds something other than integers from 0 to 2^63 - 1");
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

StoredType ParseType(const Json& json, const std::string& tensor) {
  if (!json.is_string()) FailReading(tensor + " dtype is not a string");
  const auto& word = json.get_ref<const std::string&>();
  const auto type = ParseStoredType(word);
  if (!type) FailReading(tensor + " has unknown dtype " + QuoteText(word));
  return *type;
}

/// Bytes of a tensor. A size of 0 counts as 1 for the overflow check: the product must not overflow
/// in any order of multiplication.
std::uint64_t NumBytes(const TensorEntry& entry, const std::string& tensor) {
  std::int64_t bound = static_cast<std::int64_t>(SizeOf(entry.type));
  bool empty = false;
  for (const std::int64_t size : entry.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bound, std::max<std::int64_t>(size, 1), &bound)) {
      FailReading(tensor + " has a shape of more than 2^63 - 1 bytes");
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(bound);
}

TensorEntry ParseEntry(const std::string& name, const Json& json) {
  const std::string tensor = NameOf(name);
  if (!json.is_object()) FailReading(tensor + " is not an object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!json.contains(key)) FailReading(tensor + " has no " + key);
  }
  if (json.size() != 3) FailReading(tensor + " has keys other than dtype, shape and data_offsets");
  const auto offsets = ParseIntegers(json["data_offsets"], tensor + " data_offsets");
  if (offsets.size() != 2) {
    FailReading(tensor + " has " + std::to_string(offsets.size()) + " data_offsets, expected 2");
  }
  TensorEntry entry{.name = name,
                    .type = ParseType(json["dtype"], tensor),
                    .shape = ParseIntegers(json["shape"], tensor + " shape"),
                    .begin = static_cast<std::uint64_t>(offsets[0]),
                    .end = static_cast<std::uint64_t>(offsets[1])};
  const std::uint64_t num_bytes = NumBytes(entry, tensor);
  if (entry.begin > entry.end || entry.end - entry.begin != num_bytes) {
    FailReading(tensor + " lies at bytes " + std::to_string(entry.begin) + " to " +
                std::to_string(entry.end) + ", expected " + std::to_string(num_bytes) + " bytes");
  }
  return entry;
}

/// `entries` are in the order of their bytes.
void CheckCover(const std::vector<TensorEntry>& entries, std::uint64_t num_bytes) {
  std::uint64_t end = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != end) {
      FailReading(NameOf(entry.name) + " begins at byte " + std::to_string(entry.begin) +
                  " of the data, expected " + std::to_string(end) + ": there is " +
                  (entry.begin < end ? "an overlap" : "a gap"));
    }
    end = entry.end;
  }
  if (end != num_bytes) {
    FailReading("tensors end at byte " + std::to_string(end) + " of the data, but it has " +
                std::to_string(num_bytes) + " bytes");
  }
}

Json EntryJson(const TensorEntry& entry) {
  return {{"dtype", ToString(entry.type)},
          {"shape", entry.shape},
          {"data_offsets", {entry.begin, entry.end}}};
}

std::string Dump(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    FailReading("a tensor name or metadata text is not valid UTF-8");
  }
}

}  // namespace

SafetensorsHeader ParseHeader(const std::string& json, std::uint64_t num_bytes) {
  SafetensorsHeader header;
  const Json parsed = ParseStrictJson(json, "header");
  for (const auto& [key, value] : parsed.items()) {
    if (key == kMetadataKey) {
      header.metadata = ParseMetadata(value);
    } else {
      header.entries.push_back(ParseEntry(key, value));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  CheckCover(header.entries, num_bytes);
  return header;
}

std::string FormatHeader(const SafetensorsHeader& header) {
  Json json = Json::object();
  json[kMetadataKey] = header.metadata;
  for (const TensorEntry& entry : header.entries) {
    if (entry.name == kMetadataKey) FailReading("tensor name __metadata__ is reserved");
    if (!json.emplace(entry.name, EntryJson(entry)).second) {
      FailReading("tensor name " + QuoteText(entry.name) + " is used twice");
    }
  }
  std::string text = Dump(json);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    FailReading("header has " + std::to_string(text.size()) + " bytes, expected at most " +
                std::to_string(kMaxHeaderBytes));
  }
  return text;
}

}  // namespace troupe
