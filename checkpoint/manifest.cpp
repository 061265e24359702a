#include "checkpoint/manifest.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>

#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "files/sha256.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kFormat = "troupe-sharded-2";
constexpr const char* kFormatWithoutSums = "troupe-sharded-1";
constexpr std::size_t kMaxName = 255;  ///< bytes; the limit of file systems

std::string PathOf(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

/// A name that cannot lead out of the folder.
bool IsFileName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
         name.find_first_of("/\\") == std::string::npos;
}

const Json& Member(const Json& json, const char* key) {
  if (!json.contains(key)) FailReading(std::string("has no ") + key);
  return json[key];
}

std::string ParseText(const Json& json, const char* key) {
  const Json& text = Member(json, key);
  if (!text.is_string()) FailReading(std::string(key) + " is not a string");
  return text.get<std::string>();
}

std::int64_t ParseCount(const Json& json, const char* key) {
  const Json& number = Member(json, key);
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX) {
    FailReading(std::string(key) + " is not an integer from 0 to 2^63 - 1");
  }
  return number.get<std::int64_t>();
}

std::string ParseSha256(const Json& json) {
  std::string sha256 = ParseText(json, "sha256");
  if (!IsSha256(sha256))
    FailReading("sha256 is not 64 digits from 0 to f, but " + QuoteText(sha256));
  return sha256;
}

/// Throws if `manifest` was changed. The same JSON content always prints the same text.
void CheckWhole(Json manifest) {
  const std::string expected = ParseSha256(manifest);
  manifest.erase("sha256");
  if (Sha256Of(manifest.dump(1)) != expected) FailReading("was changed since it was written");
}

CheckpointFile ParseFile(const Json& json) {
  if (!json.is_object() || json.size() != 3) {
    FailReading("files holds something other than name, bytes, sha256");
  }
  CheckpointFile file{.name = ParseText(json, "name"),
                      .bytes = static_cast<std::uint64_t>(ParseCount(json, "bytes")),
                      .sha256 = ParseSha256(json)};
  if (!IsFileName(file.name))
    FailReading("expected the name of a file, got " + QuoteText(file.name));
  return file;
}

CheckpointManifest ParseManifest(const std::string& text) {
  const Json json = ParseStrictJson(text, "manifest");
  if (const std::string format = ParseText(json, "format"); format != kFormat) {
    if (format == kFormatWithoutSums)
      FailReading("was written by an earlier version, without checksums");
    FailReading(std::string("expected format \"") + kFormat + "\", got " + QuoteText(format));
  }
  if (json.size() != 5)
    FailReading("must have exactly the keys format, step, config, files and sha256");
  CheckpointManifest manifest{
      .step = ParseCount(json, "step"), .config_hash = ParseText(json, "config"), .files = {}};
  const Json& files = Member(json, "files");
  if (!files.is_array() || files.empty()) FailReading("files is not a list of files");
  std::set<std::string> names;
  for (const Json& item : files) {
    manifest.files.push_back(ParseFile(item));
    const std::string& name = manifest.files.back().name;
    if (!names.insert(name).second) FailReading("lists " + QuoteText(name) + " twice");
  }
  CheckWhole(json);
  return manifest;
}

std::string FormatManifest(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  Json json = {{"format", kFormat},
               {"step", manifest.step},
               {"config", manifest.config_hash},
               {"files", files}};
  try {
    json["sha256"] = Sha256Of(json.dump(1));
    return json.dump(1) + "\n";
  } catch (const Json::type_error&) {
    FailReading("a text is not valid UTF-8");
  }
}

/// The size of a regular file; nothing if there is none.
std::optional<std::uint64_t> SizeOfFile(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error) return std::nullopt;
  return bytes;
}

}  // namespace

std::string ShardName(const ShardAddress& shard) {
  return ToString(StageId{shard.module, shard.pp}) + "-dp" + std::to_string(shard.dp) + "-cp" +
         std::to_string(shard.cp) + "-tp" + std::to_string(shard.tp);
}

std::string ManifestPath(const std::string& folder) { return PathOf(folder, "manifest.json"); }

std::string ShardFileName(const ShardAddress& shard) { return ShardName(shard) + ".safetensors"; }

CheckpointManifest MakeManifest(const std::string& folder, std::int64_t step,
                                const std::string& config_hash,
                                const std::vector<StoredShard>& shards) {
  CheckpointManifest manifest{.step = step, .config_hash = config_hash, .files = {}};
  for (const auto& [shard, sha256] : shards) {
    const std::string name = ShardFileName(shard);
    const std::string path = PathOf(folder, name);
    const auto bytes = SizeOfFile(path);
    if (!bytes) FailReading(path + ": not there, expected the checkpoint of " + ToString(shard));
    manifest.files.push_back({.name = name, .bytes = *bytes, .sha256 = sha256});
  }
  return manifest;
}

void WriteManifest(const std::string& folder, const CheckpointManifest& manifest) {
  const std::string path = ManifestPath(folder);
  std::string text;
  try {
    text = FormatManifest(manifest);
    ParseManifest(text);
  } catch (const std::runtime_error& error) {
    FailReading(path + ": " + error.what());
  }
  if (const auto fault = FirstFault(folder, manifest)) FailReading(*fault);
  // Other processes renamed the files into place. The directory entries of the folder and of its
  // parent may be as new as the files.
  std::error_code error;
  fs::path directory = fs::absolute(folder, error).lexically_normal();
  if (error) throw FileError(folder, "find", error);
  if (!directory.has_filename()) directory = directory.parent_path();
  for (int level = 0; level < 3; ++level) {
    SyncDirectory(directory.string());
    directory = directory.parent_path();
  }
  ReplaceFile(path, text);
}

std::optional<CheckpointManifest> ReadManifest(const std::string& folder) {
  const std::string path = ManifestPath(folder);
  try {
    if (!IsThere(path)) return std::nullopt;
    const TextFile file =
        ReadTextFile(path, kMaxManifestBytes,
                     "expected at most " + std::to_string(kMaxManifestBytes) + " bytes, got more");
    if (!file.failure.empty()) FailReading(file.failure);
    return ParseManifest(file.text);
  } catch (const FileError&) {
    throw;  // its text contains the path
  } catch (const std::runtime_error& error) {
    FailReading(path + ": " + error.what());
  }
}

std::optional<std::string> FirstFault(const std::string& folder,
                                      const CheckpointManifest& manifest) {
  for (const CheckpointFile& file : manifest.files) {
    const std::string path = PathOf(folder, file.name);
    const auto bytes = SizeOfFile(path);
    if (bytes == file.bytes) continue;
    std::string fault = path + ": ";
    fault += bytes ? std::to_string(*bytes) + " bytes" : "not there";
    return fault += ", expected " + std::to_string(file.bytes) + " bytes";
  }
  return std::nullopt;
}

}  // namespace troupe
