#include "app/resume.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "checkpoint/manifest.hpp"
#include "checkpoint/run_checkpoints.hpp"
#include "cluster/hello_check.hpp"
#include "configs/schema.hpp"
#include "files/file_error.hpp"
#include "layout/text.hpp"
#include "plan/stage_parts.hpp"

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

/// The keys of role kRun that differ.
std::set<std::string> DifferingRunKeys(const Config& now, const Config& before) {
  using Values = std::map<std::string, std::string>;
  const auto values_of = [](const Config& config) {
    Values values;
    for (const ResolvedTable& table : ResolvedTables(config)) {
      for (const ResolvedKey& key : table.keys) {
        if (key.spec->role == KeyRole::kRun) values[key.dotted] = key.value;
      }
    }
    return values;
  };
  const Values first = values_of(now);
  const Values second = values_of(before);
  std::set<std::string> keys;
  for (const auto& [one, other] : {std::pair(&first, &second), std::pair(&second, &first)}) {
    for (const auto& [key, value] : *one) {
      const auto found = other->find(key);
      if (found == other->end() || found->second != value) keys.insert(key);
    }
  }
  return keys;
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

std::string AcceptedBy(const std::string& key) {
  const std::vector<std::string> parts = Split(key, '.');
  if (parts[0] == "data" || key == "run.seed") return kDataName;
  if (parts[0] == "modules" && parts.size() > 1) return parts[1];
  if (parts[0] == "edges" && parts.size() > 2) {
    EdgeConfig edge;
    edge.from = parts[1];
    edge.to = parts[2];
    return ProjectorName(edge);
  }
  return "";
}

ResumeCheck CheckResume(const LoadedConfig& loaded, const Config& before,
                        const ResumeTerms& terms) {
  const Config& now = loaded.config;
  const auto is_set = [&](const std::string& key) {
    const auto origin = loaded.origins.find(key);
    return origin != loaded.origins.end() && origin->second.place.argument;
  };
  const auto refuse = [](const std::string& difference) {
    return ResumeCheck{.refusal = "the configuration differs: " + difference};
  };
  const std::string run = Differences(now, before, [&](const auto& key, KeyRole role) {
    return role == KeyRole::kRun && !terms.accepted.contains(AcceptedBy(key));
  });
  const std::string unset = Differences(now, before, [&](const auto& key, KeyRole role) {
    return role == KeyRole::kTuning && !terms.new_run && !is_set(key) &&
           !terms.accepted.contains(AcceptedBy(key));
  });
  if (!run.empty()) {
    std::set<std::string> names = terms.accepted;
    for (const std::string& key : DifferingRunKeys(now, before)) names.insert(AcceptedBy(key));
    const bool may_be = !names.contains("") && unset.empty();
    const std::vector<std::string> all(names.begin(), names.end());
    return refuse(run + (unset.empty() ? "" : "; " + unset) +
                  (may_be ? "; to go on with that, use --accept " + Listed(all, ",") : ""));
  }
  if (!unset.empty()) return refuse(unset + "; to change that from here on, use --set");
  const auto of_role = [&](KeyRole wanted) {
    return Differences(now, before, [&](const auto&, KeyRole role) { return role == wanted; });
  };
  ResumeCheck check{.refusal = "",
                    .tuned = TunedKeys(loaded, before),
                    .layout = of_role(KeyRole::kLayout),
                    .rounding = of_role(KeyRole::kRounding)};
  if (now.global_batch() != before.global_batch()) {
    check.layout += "; a step has " +
                    Counted(now.global_batch(), now.data.packing ? "pack" : "sample") +
                    ", that run's had " + std::to_string(before.global_batch());
  }
  if (terms.new_run) {
    const std::string tuned = of_role(KeyRole::kTuning);
    check.tuned = tuned.empty() ? std::vector<std::string>() : std::vector{tuned};
  }
  const std::string accepted =
      Differences(now, before, [](const auto&, KeyRole role) { return role == KeyRole::kRun; });
  if (!accepted.empty()) check.tuned.push_back(accepted);
  return check;
}

bool OrdersDataAnew(const Config& now, const Config& before) {
  return !Differences(now, before, [](const auto& key, KeyRole role) {
            return role == KeyRole::kRun && AcceptedBy(key) == kDataName;
          }).empty();
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
    if (!std::filesystem::exists(directory)) return "";
    const auto newest = NewestCheckpoint(directory);
    return AdviceAfterFailure(kind, directory, newest ? RequireManifest(*newest).run.step : 0);
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
