// Scans a TOML text before the parser: finds input that toml++ 3.3.0 must not read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// A mistake in a TOML text. Line and column count from 1, columns in characters.
struct TomlFault {
  int line = 0;
  int column = 0;
  std::string text;  ///< expected and actual input
};

/// Returns the first of these in `text`, which may begin with a byte order mark:
///   - bytes that are not UTF-8
///   - a control or non-ASCII character outside strings and comments, where TOML 1.0 allows neither
///   - a non-ASCII character where a multi-line string goes on after a backslash: valid TOML, but
///     the parser's test for white space is undefined for many of them
///   - a key with more than 1000 dots, its tables in braces included: all code that walks the
///     tables is recursive
/// The parser reports all other errors.
std::optional<TomlFault> FindTomlFault(std::string_view text);

}  // namespace troupe
