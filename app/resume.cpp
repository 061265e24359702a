#include "app/resume.hpp"

#include "cluster/hello_check.hpp"
#include "configs/resolved.hpp"

namespace troupe {
namespace {

/// "key = value" of each key that `wanted` accepts.
template <class Wanted>
std::string LinesOf(const Config& config, Wanted wanted) {
  std::string lines;
  for (const ResolvedTable& table : ResolvedTables(config)) {
    for (const ResolvedKey& key : table.keys) {
      const std::string name = (table.dotted.empty() ? "" : table.dotted + ".") + key.name;
      if (wanted(name, key.spec->role)) lines += name + " = " + key.value + "\n";
    }
  }
  return lines;
}

template <class Wanted>
std::string Differences(const Config& now, const Config& before, Wanted wanted) {
  return DescribeDifferences(LinesOf(now, wanted), LinesOf(before, wanted), "that run");
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
const char* StoredType(Precision precision) {
  return precision == Precision::kFloat64 ? "float64" : "float32";
}

}  // namespace

ResumeCheck CheckResume(const LoadedConfig& loaded, const Config& before) {
  const Config& now = loaded.config;
  const auto is_set = [&](const std::string& key) {
    const auto origin = loaded.origins.find(key);
    return origin != loaded.origins.end() && origin->second.place.argument;
  };
  const std::string run =
      Differences(now, before, [](const auto&, KeyRole role) { return role == KeyRole::kRun; });
  const std::string unset = Differences(now, before, [&](const auto& key, KeyRole role) {
    return role == KeyRole::kTuning && !is_set(key);
  });
  if (!run.empty()) {
    return {"the configuration differs: " + run + (unset.empty() ? "" : "; " + unset), {}, ""};
  }
  if (!unset.empty()) {
    return {
        "the configuration differs: " + unset + "; to change that from here on, use --set", {}, ""};
  }
  const std::string rounding = Differences(
      now, before, [](const auto&, KeyRole role) { return role == KeyRole::kRounding; });
  const std::string kept = StoredType(now.run.precision);
  const std::string stored = StoredType(before.run.precision);
  if (kept != stored) {
    return {"the configuration differs: " + rounding + "; its checkpoints hold parameters and " +
                "moments in " + stored + ", expected " + kept,
            {},
            ""};
  }
  return {"", TunedKeys(loaded, before), rounding};
}

}  // namespace troupe
