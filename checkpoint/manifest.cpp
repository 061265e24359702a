#include "checkpoint/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>

#include "checkpoint/tensor_file.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "files/sha256.hpp"
#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "layout/text.hpp"
#include "modules/tensor_pieces.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kFormat = "troupe-sharded-3";
constexpr std::size_t kMaxName = 255;  ///< bytes; the limit of file systems

std::string PathOf(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

/// A name that cannot lead out of the folder.
bool IsFileName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
         name.find_first_of("/\\") == std::string::npos;
}

/// Throws unless `json` is an object with exactly these keys. `what` begins the text: "files".
void RequireKeys(const Json& json, const char* what, const std::vector<std::string>& keys) {
  bool fits = json.is_object() && json.size() == keys.size();
  for (const std::string& key : keys) fits = fits && json.contains(key);
  if (!fits) FailReading(std::string(what) + " must have exactly the keys " + Listed(keys, ", "));
}

std::string ParseText(const Json& json, const char* key) {
  const Json& text = json.at(key);
  if (!text.is_string()) FailReading(std::string(key) + " is not a string");
  return text.get<std::string>();
}

std::int64_t ParseNumber(const Json& number, const char* what) {
  if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX) {
    FailReading(std::string(what) + " is not an integer from 0 to 2^63 - 1");
  }
  return number.get<std::int64_t>();
}

std::int64_t ParseCount(const Json& json, const char* key) {
  return ParseNumber(json.at(key), key);
}

/// Returns the text of `key` if it has `digits` digits from 0 to f.
std::string ParseHex(const Json& json, const char* key, std::size_t digits) {
  std::string hex = ParseText(json, key);
  if (hex.size() == digits && hex.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return hex;
  }
  FailReading(std::string(key) + " is not " + std::to_string(digits) + " digits from 0 to f, but " +
              QuoteText(hex));
}

constexpr std::size_t kSha256Digits = 64;
constexpr std::size_t kDigestDigits = 16;

std::string FormatDigest(std::uint64_t digest) {
  std::string text(kDigestDigits, '0');
  for (std::size_t i = kDigestDigits; i-- > 0; digest >>= 4)
    text[i] = "0123456789abcdef"[digest & 15];
  return text;
}

/// Throws if `manifest`, which was parsed from `text`, was changed. The same JSON content always
/// prints the same text.
void CheckWhole(Json manifest, const std::string& text) {
  const std::string expected = ParseHex(manifest, "sha256", kSha256Digits);
  const bool same_text = manifest.dump(1) + "\n" == text;
  manifest.erase("sha256");
  if (same_text && Sha256Of(manifest.dump(1)) == expected) return;
  FailReading("was changed since it was written");
}

CheckpointFile ParseFile(const Json& json) {
  const bool many_disks = json.is_object() && json.contains("disk");
  std::vector<std::string> keys = {"name", "process", "bytes", "sha256", "header_sha256"};
  if (many_disks) keys.push_back("disk");
  RequireKeys(json, "an item of files", keys);
  CheckpointFile file{.name = ParseText(json, "name"),
                      .process = ParseText(json, "process"),
                      .bytes = static_cast<std::uint64_t>(ParseCount(json, "bytes")),
                      .sha256 = ParseHex(json, "sha256", kSha256Digits),
                      .header_sha256 = ParseHex(json, "header_sha256", kSha256Digits),
                      .disk = many_disks ? ParseText(json, "disk") : ""};
  if (!IsFileName(file.name)) {
    FailReading("expected the name of a file, got " + QuoteText(file.name));
  }
  return file;
}

SavedTensor ParseTensor(const Json& json, std::size_t num_files) {
  RequireKeys(json, "an item of tensors", {"type", "shape", "digest", "files"});
  SavedTensor tensor;
  const std::string word = ParseText(json, "type");
  const auto type = ParseStoredType(word);
  if (!type) FailReading("unknown type " + QuoteText(word));
  tensor.type = *type;
  const std::string digest = ParseHex(json, "digest", kDigestDigits);
  std::from_chars(digest.data(), digest.data() + digest.size(), tensor.digest, 16);
  for (const char* key : {"shape", "files"}) {
    if (!json[key].is_array()) FailReading(std::string(key) + " is not a list");
  }
  for (const Json& size : json["shape"]) tensor.shape.push_back(ParseNumber(size, "a size"));
  TensorEntry whole;
  whole.type = tensor.type;
  whole.shape = tensor.shape;
  CheckedBytes(whole);
  for (const Json& place : json["files"]) {
    const auto file = static_cast<std::size_t>(ParseNumber(place, "a place in files"));
    if (file >= num_files || (!tensor.files.empty() && file <= tensor.files.back())) {
      FailReading("files of a tensor are not ascending places in files");
    }
    tensor.files.push_back(file);
  }
  return tensor;
}

RunState ParseRun(const Json& json) {
  RunState run{.step = ParseCount(json, "step"),
               .steps = ParseCount(json, "steps"),
               .configuration = ParseText(json, "configuration"),
               .data = {}};
  const Json& data = json["data"];
  const bool packed = data.is_object() && data.contains("window");
  std::vector<std::string> keys = {"place", "group", "rows", "digest"};
  if (packed) keys.insert(keys.end(), {"window", "window_pack"});
  RequireKeys(data, "data", keys);
  run.data = {.place = ParseCount(data, "place"),
              .group = ParseCount(data, "group"),
              .rows = ParseCount(data, "rows"),
              .digest = ParseText(data, "digest")};
  if (packed) {
    run.data.window = {ParseCount(data, "window"), ParseCount(data, "window_pack")};
    const auto& [number, first_pack] = run.data.window;
    if (number > first_pack || first_pack > run.data.place) {
      FailReading("expected data.window <= data.window_pack <= data.place");
    }
  }
  return run;
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

CheckpointManifest ParseManifest(const std::string& text) {
  constexpr int kDepth = 4;
  const Json json = ParseStrictJson(text, "manifest", kDepth);
  if (!json.contains("format")) FailReading("has no format");
  if (const std::string format = ParseText(json, "format"); format != kFormat) {
    FailReading(format.starts_with("troupe-sharded-")
                    ? "was written by another version of troupe, as " + QuoteText(format) +
                          "; this one reads \"" + kFormat + "\""
                    : std::string("expected format \"") + kFormat + "\", got " + QuoteText(format));
  }
  RequireKeys(json, "it",
              {"format", "step", "steps", "configuration", "data", "files", "tensors", "sha256"});
  CheckpointManifest manifest{.run = ParseRun(json), .files = {}, .tensors = {}};
  const Json& files = json["files"];
  if (!files.is_array() || files.empty()) FailReading("files is not a list of files");
  std::set<std::string> names;
  for (const Json& item : files) {
    manifest.files.push_back(ParseFile(item));
    const std::string& name = manifest.files.back().name;
    if (!names.insert(name).second) FailReading("lists " + QuoteText(name) + " twice");
  }
  if (!json["tensors"].is_object()) FailReading("tensors is not an object");
  for (const auto& [name, tensor] : json["tensors"].items()) {
    manifest.tensors.emplace(name, ParseTensor(tensor, manifest.files.size()));
  }
  CheckWhole(json, text);
  return manifest;
}

std::string FormatManifest(const CheckpointManifest& manifest) {
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) {
    files.push_back({{"name", file.name},
                     {"process", file.process},
                     {"bytes", file.bytes},
                     {"sha256", file.sha256},
                     {"header_sha256", file.header_sha256}});
    if (!file.disk.empty()) files.back()["disk"] = file.disk;
  }
  Json tensors = Json::object();
  for (const auto& [name, tensor] : manifest.tensors) {
    tensors[name] = {{"type", ToString(tensor.type)},
                     {"shape", tensor.shape},
                     {"digest", FormatDigest(tensor.digest)},
                     {"files", tensor.files}};
  }
  const RunState& run = manifest.run;
  Json data = {{"place", run.data.place},
               {"group", run.data.group},
               {"rows", run.data.rows},
               {"digest", run.data.digest}};
  if (run.data.window != PackWindow()) {
    data["window"] = run.data.window.number;
    data["window_pack"] = run.data.window.first_pack;
  }
  Json json = {{"format", kFormat},  {"step", run.step},
               {"steps", run.steps}, {"configuration", run.configuration},
               {"data", data},       {"files", files},
               {"tensors", tensors}};
  try {
    json["sha256"] = Sha256Of(json.dump(1));
    return json.dump(1) + "\n";
  } catch (const Json::type_error&) {
    FailReading("a text is not valid UTF-8");
  }
}

std::string ShardName(const ShardAddress& shard) {
  return ToString(StageId{shard.module, shard.pp}) + "-dp" + std::to_string(shard.dp) + "-cp" +
         std::to_string(shard.cp) + "-tp" + std::to_string(shard.tp);
}

std::string ManifestPath(const std::string& folder) { return PathOf(folder, kManifestName); }

std::string ShardFileName(const ShardAddress& shard) { return ShardName(shard) + ".safetensors"; }

std::string StoredName(TensorKind kind, const std::string& name) {
  return ToString(kind) + "/" + name;
}

CheckpointManifest MakeManifest(const RunState& run, const std::vector<WrittenShard>& shards) {
  CheckpointManifest manifest{.run = run, .files = {}, .tensors = {}};
  for (const WrittenShard& written : shards) {
    const StoredShard& stored = written.stored;
    if (stored.file.empty()) continue;
    for (const StoredTensor& piece : stored.tensors) {
      const std::string name = StoredName(piece.kind, piece.name);
      const SavedTensor empty{StoredTypeOf(piece.type), piece.shape, 0, {}};
      SavedTensor& tensor = manifest.tensors.try_emplace(name, empty).first->second;
      if (tensor.type != empty.type || tensor.shape != empty.shape) {
        FailReading(ToString(written.shard) + ": tensor " + name + ": expected a piece of " +
                    ToString(tensor.shape) + " of " + ToString(tensor.type) + ", got one of " +
                    ToString(empty.shape) + " of " + ToString(empty.type));
      }
      tensor.digest += piece.digest;
      tensor.files.push_back(manifest.files.size());
    }
    manifest.files.push_back({.name = stored.file,
                              .process = stored.process,
                              .bytes = stored.bytes,
                              .sha256 = stored.sha256,
                              .header_sha256 = stored.header_sha256,
                              .disk = stored.disk});
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

CheckpointManifest RequireManifest(const std::string& folder) {
  auto manifest = ReadManifest(folder);
  if (!manifest) FailReading(folder + ": no manifest.json: not a complete checkpoint");
  return *std::move(manifest);
}

std::optional<std::string> FaultOf(const std::string& folder, const CheckpointFile& file) {
  const std::string path = PathOf(folder, file.name);
  const auto bytes = SizeOfFile(path);
  if (bytes == file.bytes) return std::nullopt;
  std::string fault = path + ": ";
  fault += bytes ? std::to_string(*bytes) + " bytes" : "not there";
  fault += ", expected " + std::to_string(file.bytes) + " bytes";
  return file.disk.empty() ? fault : fault + ", on the disk of " + file.disk;
}

std::string DiskOf(const std::string& checkpoints) {
  const std::string path = PathOf(checkpoints, kDiskFile);
  if (!IsThere(path)) return "";
  constexpr std::uint64_t kMostBytes = 4096;
  TextFile file = ReadTextFile(path, kMostBytes, "expected the name of a process");
  if (!file.failure.empty()) FailReading(path + ": " + file.failure);
  while (file.text.ends_with('\n')) file.text.pop_back();
  return file.text;
}

std::vector<CheckpointFile> FilesHere(const std::string& folder,
                                      const CheckpointManifest& manifest) {
  std::set<std::string> disks = {"", DiskOf(fs::path(folder).parent_path().string())};
  for (const CheckpointFile& file : manifest.files) {
    if (!disks.contains(file.disk) && IsThere(PathOf(folder, file.name))) disks.insert(file.disk);
  }
  std::vector<CheckpointFile> here;
  std::ranges::copy_if(manifest.files, std::back_inserter(here),
                       [&](const CheckpointFile& file) { return disks.contains(file.disk); });
  return here;
}

std::string ManifestSum(const std::string& folder) {
  const std::string path = ManifestPath(folder);
  return IsThere(path) ? Sha256OfFile(path) : "";
}

std::optional<std::string> FirstFault(const std::string& folder,
                                      const CheckpointManifest& manifest) {
  for (const CheckpointFile& file : FilesHere(folder, manifest)) {
    if (auto fault = FaultOf(folder, file)) return fault;
  }
  return std::nullopt;
}

}  // namespace troupe
