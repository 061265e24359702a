#include "cli/schedule/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "cluster/variables.hpp"
#include "configs/text_file.hpp"
#include "configs/toml_value.hpp"
#include "schedule/action_table.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMostMicrobatches = 100'000;
constexpr std::int64_t kMostChunks = 1024;  ///< as of schedule.chunks

[[noreturn]] void Refuse(const std::string& flag, const std::string& expected,
                         const std::string& got) {
  throw LaunchError(flag + ": expected " + expected + ", got " + Quoted(got));
}

std::vector<std::string> Pieces(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0;;) {
    const std::size_t comma = text.find(',', at);
    pieces.push_back(text.substr(at, comma - at));
    if (comma == std::string::npos) return pieces;
    at = comma + 1;
  }
}

/// Returns nothing if `text` is not a whole number from 1 to `most`.
std::optional<std::int64_t> NumberUpTo(std::int64_t most, const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < 1 || number > most) return std::nullopt;
  return number;
}

/// Stages per rank of a table of actions; 1 if it is malformed, which the loader reports.
int ChunksIn(const std::string& text) {
  try {
    const ActionTable table = ParseActionTable(text);
    int stages = 1;
    for (const auto& row : table.rows) {
      for (const Action& action : row) stages = std::max(stages, action.stage + 1);
    }
    return std::max(1, stages / static_cast<int>(table.rows.size()));
  } catch (const std::invalid_argument&) {
    return 1;
  }
}

}  // namespace

std::vector<std::string> OverridesOf(const std::string& kind, const std::string& flag) {
  if (kind.empty()) return {};
  const auto colon = kind.find(':');
  const bool alone = colon == std::string::npos;
  const std::string name = kind.substr(0, colon);
  const std::string rest = alone ? "" : kind.substr(colon + 1);
  if (name == "interleaved" && !alone) {
    if (!NumberUpTo(kMostChunks, rest)) {
      Refuse(flag,
             "interleaved:CHUNKS with a whole number from 1 to " + std::to_string(kMostChunks),
             kind);
    }
    return {"schedule.kind=interleaved", "schedule.chunks=" + rest};
  }
  if (name == "csv" && !rest.empty()) {
    const TextFile file = ReadTextFile(rest, kMaxWholeFile, "expected at most 64 MiB, got more");
    if (!file.failure.empty()) throw LaunchError(flag + ": " + rest + ": " + file.failure);
    return {"schedule.kind=csv", "schedule.file=" + rest,
            "schedule.chunks=" + std::to_string(ChunksIn(file.text))};
  }
  const bool known = name == "1f1b" || name == "gpipe" || name == "zb-h1" || name == "interleaved";
  if (!alone || !known) Refuse(flag, "1f1b, gpipe, zb-h1, interleaved[:CHUNKS] or csv:FILE", kind);
  return {"schedule.kind=" + name};
}

std::vector<std::string> KindsOf(const std::string& flag, const std::vector<std::string>& values) {
  std::vector<std::string> kinds;
  for (const std::string& value : values) {
    for (const std::string& kind : Pieces(value)) {
      if (kind.empty()) Refuse(flag, "a kind before and after each comma", value);
      OverridesOf(kind, flag);
      kinds.push_back(kind);
    }
  }
  return kinds;
}

std::vector<std::int64_t> CountsOf(const std::string& flag,
                                   const std::vector<std::string>& values) {
  std::vector<std::int64_t> counts;
  for (const std::string& value : values) {
    for (const std::string& text : Pieces(value)) {
      const auto count = NumberUpTo(kMostMicrobatches, text);
      if (!count) {
        Refuse(
            flag,
            "whole numbers from 1 to " + std::to_string(kMostMicrobatches) + " with commas between",
            value);
      }
      counts.push_back(*count);
    }
  }
  return counts;
}

}  // namespace troupe
