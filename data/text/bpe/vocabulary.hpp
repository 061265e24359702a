// The tokens of a model: texts and ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/bpe/json_node.hpp"

namespace troupe::bpe {

/// Far above any published vocabulary; a table of this many ids stays small.
inline constexpr std::uint32_t kMaxId = (1U << 22U) - 1;

/// Published ones have runs of 512 characters.
inline constexpr std::size_t kMaxTokenBytes = 16 << 10U;

/// Finds strings by views.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};
using IdByText = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

class Vocabulary {
 public:
  Vocabulary() = default;
  /// Reads {TEXT: ID, ...}. Throws std::runtime_error, a line with file and place, for an id above
  /// kMaxId, a token above kMaxTokenBytes, and for two tokens with one id.
  explicit Vocabulary(const JsonNode& node);

  std::optional<std::uint32_t> Find(std::string_view text) const;
  /// The text of a token; none if no token has the id.
  std::optional<std::string_view> TextOf(std::int64_t id) const;
  /// All ids are below it.
  std::uint32_t end() const { return static_cast<std::uint32_t>(texts_.size()); }
  const IdByText& ids() const { return ids_; }

 private:
  IdByText ids_;
  std::vector<const std::string*> texts_;  ///< by id; keys of ids_, which do not move
};

}  // namespace troupe::bpe
