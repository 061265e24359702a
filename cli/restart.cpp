#include "cli/restart.hpp"

#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/sha256.hpp"

namespace troupe {
namespace {

std::string Sha256OfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes(std::size_t{1} << 20);
  Sha256 sum;
  while (file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || file.gcount() > 0) {
    const auto count = static_cast<std::size_t>(file.gcount());
    sum.Update(std::as_bytes(std::span(bytes).first(count)));
  }
  return sum.Hex();
}

}  // namespace

std::string WhereAnew(const std::string& directory, const CheckpointConfig& checkpoints) {
  if (const auto newest = NewestCheckpoint(directory)) {
    return "after step " + std::to_string(ReadManifest(*newest)->step);
  }
  return std::string("from the beginning: there is no checkpoint ") +
         (checkpoints.periodic() ? "yet" : "(checkpoint.every and every_minutes are 0)");
}

std::string WhatToDoAfterFailure(const std::string& directory, std::int64_t steps) {
  if (steps == 0) {
    return "nothing to go on from: no checkpoint is complete yet (checkpoint.every_minutes, every)";
  }
  return "go on after step " + std::to_string(steps) + " with: the same command and --resume " +
         directory;
}

std::optional<std::string> SetAsideIfDamaged(const std::string& directory) {
  const auto newest = NewestCheckpoint(directory);
  if (!newest) return std::nullopt;
  const auto manifest = ReadManifest(*newest);
  for (const CheckpointFile& file : manifest->files) {
    if (Sha256OfFile(*newest + "/" + file.name) == file.sha256) continue;
    const std::string aside = *newest + ".damaged";
    std::filesystem::rename(*newest, aside);
    return aside + "/" + file.name + ": damaged since it was written; this checkpoint is set aside";
  }
  return std::nullopt;
}

}  // namespace troupe
