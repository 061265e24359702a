#include "cli/schedule/candidate.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cluster/variables.hpp"
#include "configs/loader.hpp"
#include "configs/toml_value.hpp"
#include "files/text_file.hpp"
#include "schedule/action_table.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMostMicrobatches = 100'000;
constexpr std::int64_t kMostChunks = 1024;  ///< as of schedule.chunks

[[noreturn]] void Refuse(const std::string& flag, const std::string& expected,
                         const std::string& got) {
  throw LaunchError(flag + ": expected " + expected + ", got " + Quoted(got));
}

/// Splits each of `values` at its commas, and calls `take` with each piece and its value.
template <class Take>
void ForEachPiece(const std::vector<std::string>& values, Take take) {
  for (const std::string& value : values) {
    for (std::size_t at = 0, comma = 0; comma != std::string::npos; at = comma + 1) {
      comma = value.find(',', at);
      take(value.substr(at, comma - at), value);
    }
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
  if (!alone || name == "csv" || !ScheduleKindOf(name))
    Refuse(flag, "1f1b, gpipe, zb-h1, interleaved[:CHUNKS] or csv:FILE", kind);
  return {"schedule.kind=" + name};
}

std::vector<std::string> KindsOf(const std::string& flag, const std::vector<std::string>& values) {
  std::vector<std::string> kinds;
  ForEachPiece(values, [&](const std::string& kind, const std::string& value) {
    if (kind.empty()) Refuse(flag, "a kind before and after each comma", value);
    OverridesOf(kind, flag);
    kinds.push_back(kind);
  });
  return kinds;
}

std::vector<std::int64_t> CountsOf(const std::string& flag,
                                   const std::vector<std::string>& values) {
  std::vector<std::int64_t> counts;
  ForEachPiece(values, [&](const std::string& text, const std::string& value) {
    const auto count = NumberUpTo(kMostMicrobatches, text);
    if (!count) {
      Refuse(
          flag,
          "whole numbers from 1 to " + std::to_string(kMostMicrobatches) + " with commas between",
          value);
    }
    counts.push_back(*count);
  });
  return counts;
}

Candidate LoadCandidate(const ConfigArguments& arguments, const std::string& kind,
                        std::int64_t microbatches) {
  std::vector<std::string> overrides = arguments.overrides;
  for (const std::string& more : OverridesOf(kind)) overrides.push_back(more);
  if (microbatches > 0) {
    overrides.push_back("schedule.microbatches=" + std::to_string(microbatches));
  }
  Candidate candidate;
  Config config = LoadConfig(arguments.path, overrides).config;
  candidate.kind = kind.empty() ? ToString(config.schedule.kind) : kind;
  candidate.plan = std::make_shared<const JobPlan>(std::move(config));
  return candidate;
}

}  // namespace troupe
