// Parses JSON, from untrusted files among others.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace troupe {

/// Parses `text`, an object of at most `max_depth` levels of braces and brackets, in memory
/// proportional to its size. Throws std::runtime_error, one line that begins with `subject` ("header"): not an
/// object, a zero byte, deeper nesting, a repeated key (a parser would silently keep the last),
/// invalid JSON, 1e999.
nlohmann::json ParseStrictJson(const std::string& text, const std::string& subject,
                               int max_depth = 3);

/// Parses what this program wrote. Text that was cut off becomes a discarded value, for which
/// is_object() is false.
nlohmann::json ParseOwnJson(const std::string& text);

/// Throws std::runtime_error with `fault`, a fault of a file.
[[noreturn]] void FailReading(const std::string& fault);

/// Quotes text from a file as one short printable line.
std::string QuoteText(const std::string& text);

}  // namespace troupe
