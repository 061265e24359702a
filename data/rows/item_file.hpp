// The file of an item: on disk, or bytes that came out of a shard.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using SharedBytes = std::shared_ptr<const std::vector<std::uint8_t>>;

struct ItemFile {
  // NOLINTNEXTLINE(google-explicit-constructor): a path names a file on disk
  ItemFile(std::string path) : name(std::move(path)) {}
  ItemFile(std::string text, SharedBytes all, std::span<const std::uint8_t> own)
      : name(std::move(text)), bytes(own), owner(std::move(all)) {}

  std::string name;                                    ///< its path; in memory: for errors
  std::optional<std::span<const std::uint8_t>> bytes;  ///< unset: on disk
  SharedBytes owner;                                   ///< of `bytes`
};

}  // namespace troupe
