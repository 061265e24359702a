// A sample as workers make it: text as tokens, items as preprocessors prepare them. Workers hand it on as
// one buffer of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/sample.hpp"
#include "modules/stage_program.hpp"
#include "transport/buffer.hpp"

namespace troupe {

struct PreparedItem {
  std::int64_t length = 0;                   ///< along dimension 0
  std::span<const std::uint8_t> bytes = {};  ///< Preprocessor::Prepare; empty: its values are 0
  SharedBytes owner = nullptr;               ///< of `bytes`; null: a prepared sample owns them
};

/// Prepares a file of a field. Calls `failed` if it cannot be read; if that returns, the values are 0. If
/// not even the length is known, throws after it.
PreparedItem PrepareItem(
    const ItemFormat& format, const ItemFile& file,
    const std::function<void(const std::runtime_error& error, bool has_length)>& failed);

/// Returns the items as one tensor, in their order.
FieldItems Finished(const std::vector<PreparedItem>& items, const ItemFormat& format);

struct PreparedSample {
  std::string id = {};
  Sample sample = {};
  std::vector<std::vector<PreparedItem>> items = {};  ///< by encoder; empty for those not asked for
  std::vector<ReplacedItem> replaced = {};
  Buffer owner = {};  ///< of the items' bytes
};

/// Little endian. Copies the bytes of the items.
Buffer Encode(const PreparedSample& sample);
/// `fields`: the encoders whose items were asked for, as in SampleTicket. Throws std::runtime_error for
/// bytes that are malformed, that do not fit the format, or that have other items.
PreparedSample Decode(const Buffer& bytes, const SampleFormat& format, std::uint64_t fields);

}  // namespace troupe
