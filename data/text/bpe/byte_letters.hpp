// The alphabet of byte-level tokenizers: a printable character for each byte, so that a vocabulary
// of any bytes is a list of texts. GPT-2 introduced it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::bpe {

/// Returns the character of `byte`, in UTF-8.
std::string LetterOf(std::uint8_t byte);

/// Returns the bytes whose characters make `text`; none if one of its characters is no byte's.
std::optional<std::string> BytesOf(std::string_view text);

}  // namespace troupe::bpe
