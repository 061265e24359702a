#include "checkpoint/shard_file.hpp"

#include "checkpoint/strict_json.hpp"

namespace troupe {

namespace {

/// Enough digits to distinguish two sums in a line.
constexpr std::size_t kShownDigits = 12;

void CheckMetadata(const SafetensorsReader& reader, const char* key, const std::string& expected) {
  const auto found = reader.metadata().find(key);
  if (found != reader.metadata().end() && found->second == expected) return;
  const bool has = found != reader.metadata().end();
  throw DamagedShard(
      reader.path() + ": its header has " +
      (has ? std::string(key) + " " + QuoteText(found->second) : std::string("no ") + key) +
      ", expected " + QuoteText(expected));
}

}  // namespace

Metadata ShardMetadata(const ShardAddress& shard, std::int64_t step) {
  return {{"shard", ShardName(shard)}, {"step", std::to_string(step)}};
}

std::shared_ptr<const SafetensorsReader> OpenShardFile(const std::string& folder, std::int64_t step,
                                                       const CheckpointFile& file) {
  CheckpointManifest one;
  one.files = {file};
  if (const auto fault = FirstFault(folder, one)) throw std::runtime_error(*fault);
  auto reader = std::make_shared<const SafetensorsReader>(folder + "/" + file.name);
  CheckMetadata(*reader, "step", std::to_string(step));
  CheckMetadata(*reader, "shard", file.name.substr(0, file.name.rfind('.')));
  return reader;
}

void CheckSha256(const SafetensorsReader& reader, const CheckpointFile& file,
                 const std::string& sha256) {
  if (sha256 == file.sha256) return;
  throw DamagedShard(reader.path() + ": damaged since it was written: its SHA-256 is " +
                     sha256.substr(0, kShownDigits) + "..., expected " +
                     file.sha256.substr(0, kShownDigits) + "...");
}

}  // namespace troupe
