#include "app/resume.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "cluster/hello_check.hpp"
#include "configs/schema.hpp"
#include "files/file_error.hpp"

namespace troupe {
namespace {

template <class Wanted>
std::string Differences(const Config& now, const Config& before, Wanted wanted) {
  const auto by_role = [&](const std::string& key, const KeySpec& spec) {
    return wanted(key, spec.role);
  };
  return DescribeDifferences(KeyLines(now, by_role), KeyLines(before, by_role), "that run");
}

/// Each tuning key that --set changes, with both values.
std::vector<std::string> TunedKeys(const LoadedConfig& now, const Config& before) {
  std::vector<std::string> tuned;
  for (const auto& [key, origin] : now.origins) {
    if (!origin.place.argument) continue;
    const std::string line =
        Differences(now.config, before, [&key = key](const std::string& name, KeyRole role) {
          return name == key && role == KeyRole::kTuning;
        });
    if (!line.empty()) tuned.push_back(line);
  }
  return tuned;
}

/// The type of parameters and moments in a checkpoint; bfloat16 keeps them in float32.
const char* PrecisionInFiles(Precision precision) {
  return precision == Precision::kFloat64 ? "float64" : "float32";
}

/// Quotes `text` for a shell.
std::string ShellWord(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-+,:@=").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

std::string KeyLines(
    const Config& config,
    const std::function<bool(const std::string& key, const KeySpec& spec)>& wanted) {
  std::string lines;
  for (const ResolvedTable& table : ResolvedTables(config)) {
    for (const ResolvedKey& key : table.keys) {
      if (wanted(key.dotted, *key.spec)) lines += key.dotted + " = " + key.value + "\n";
    }
  }
  return lines;
}

ResumeCheck CheckResume(const LoadedConfig& loaded, const Config& before) {
  const Config& now = loaded.config;
  const auto is_set = [&](const std::string& key) {
    const auto origin = loaded.origins.find(key);
    return origin != loaded.origins.end() && origin->second.place.argument;
  };
  const auto refuse = [](const std::string& difference) {
    return ResumeCheck{"the configuration differs: " + difference, {}, ""};
  };
  const std::string run =
      Differences(now, before, [](const auto&, KeyRole role) { return role == KeyRole::kRun; });
  const std::string unset = Differences(now, before, [&](const auto& key, KeyRole role) {
    return role == KeyRole::kTuning && !is_set(key);
  });
  if (!run.empty()) {
    return refuse(run + (unset.empty() ? "" : "; " + unset));
  }
  if (!unset.empty()) return refuse(unset + "; to change that from here on, use --set");
  const std::string rounding = Differences(
      now, before, [](const auto&, KeyRole role) { return role == KeyRole::kRounding; });
  const std::string kept = PrecisionInFiles(now.run.precision);
  const std::string stored = PrecisionInFiles(before.run.precision);
  if (kept != stored) {
    return refuse(rounding + "; its checkpoints hold parameters and moments in " + stored +
                  ", expected " + kept);
  }
  return {"", TunedKeys(loaded, before), rounding};
}

std::string RestartPlace(const std::string& directory, const CheckpointConfig& checkpoints) {
  if (const auto newest = NewestCheckpoint(directory)) {
    return "after step " + std::to_string(ReadManifest(*newest)->step);
  }
  return std::string("from the beginning: there is no checkpoint ") +
         (checkpoints.periodic() ? "yet" : kNotPeriodic);
}

std::string AdviceAfterFailure(FailureKind kind, const std::string& directory, std::int64_t steps) {
  if (kind == FailureKind::kDamaged) return "";
  if (steps == 0) {
    return "nothing to resume from: no checkpoint is complete yet (checkpoint.every_minutes, "
           "every)\n";
  }
  // An error would recur at the same place.
  const bool again = kind == FailureKind::kError || kind == FailureKind::kCheck;
  return "resume after step " + std::to_string(steps) +
         (again ? ", once the cause is removed," : "") + " with: the same command and --resume " +
         ShellWord(directory) + "\n";
}

std::string AdviceAfterFailure(FailureKind kind, const std::string& directory) {
  try {
    const auto newest = NewestCheckpoint(directory);
    return AdviceAfterFailure(kind, directory, newest ? ReadManifest(*newest)->step : 0);
  } catch (const std::exception&) {
    return "";  // an error about the disk would hide the cause
  }
}

std::optional<std::string> SetAsideIfDamaged(const std::string& directory) {
  const auto newest = NewestCheckpoint(directory);
  if (!newest) return std::nullopt;
  const std::string damaged = DamagedFile(*newest);
  if (damaged.empty()) return std::nullopt;
  const std::string aside = *newest + ".damaged";
  std::error_code error;
  std::filesystem::rename(*newest, aside, error);
  if (error) throw FileError(*newest, "rename", error);
  const std::string name = std::filesystem::path(damaged).filename().string();
  return aside + "/" + name + ": damaged since it was written; this checkpoint is set aside";
}

}  // namespace troupe
