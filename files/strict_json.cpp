#include "files/strict_json.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxQuoted = 80;

}  // namespace

void FailReading(const std::string& fault) { throw std::runtime_error(fault); }

nlohmann::json ParseStrictJson(const std::string& text, const std::string& subject, int max_depth) {
  if (!text.starts_with('{')) FailReading(subject + " does not begin with '{'");
  // The parser would take a zero byte for the end of the text and ignore the rest.
  const std::size_t zero = text.find('\0');
  if (zero != std::string::npos) {
    FailReading(subject + " has a zero byte at byte " + std::to_string(zero + 1));
  }
  // Stops the parser at a repeated key or at unexpected nesting, before it allocates for it. By
  // depth, of the innermost object.
  std::vector<std::set<std::string>> keys(static_cast<std::size_t>(max_depth));
  const auto guard = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= max_depth) {
        FailReading(subject + " is nested deeper than " + std::to_string(max_depth));
      }
      keys[static_cast<std::size_t>(depth)].clear();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys[static_cast<std::size_t>(depth) - 1].insert(key).second) {
        FailReading(subject + " has the key " + QuoteText(key) + " twice");
      }
    }
    return true;
  };
  try {
    return Json::parse(text, guard);
  } catch (const Json::parse_error& error) {
    FailReading(subject + " is not valid JSON at byte " + std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    FailReading(subject + " holds a number that is too large");
  }
}

nlohmann::json ParseOwnJson(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string QuoteText(const std::string& text) {
  std::string quoted = Json(text.substr(0, kMaxQuoted))
                           .dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() > kMaxQuoted ? quoted + "..." : quoted;
}

}  // namespace troupe
