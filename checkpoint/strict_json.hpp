// JSON from files that nobody vouches for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace troupe {

/// Parses `text`, an object of at most three levels of braces and brackets, in memory of the order
/// of its size. Throws std::runtime_error, one line that begins with `what` ("header"): no object,
/// a zero byte, deeper nesting, a repeated key (a parser would keep the last silently), no JSON,
/// 1e999.
nlohmann::json ParseStrictJson(const std::string& text, const std::string& what);

/// Throws std::runtime_error: `what` is wrong with a file.
[[noreturn]] void FailReading(const std::string& what);

/// Text from a file in quotes, so that it stays one short printable line.
std::string QuoteText(const std::string& text);

}  // namespace troupe
