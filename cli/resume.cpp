#include "cli/resume.hpp"

#include "cluster/hello_check.hpp"
#include "configs/resolved.hpp"

namespace troupe {
namespace {

/// "key = value" of each key of this role.
std::string LinesOf(const Config& config, KeyRole role) {
  std::string lines;
  for (const ResolvedTable& table : ResolvedTables(config)) {
    for (const ResolvedKey& key : table.keys) {
      if (key.spec->role != role) continue;
      lines += (table.dotted.empty() ? "" : table.dotted + ".") + key.name + " = " + key.value;
      lines += "\n";
    }
  }
  return lines;
}

std::string Differences(const Config& now, const Config& before, KeyRole role) {
  return DescribeDifferences(LinesOf(now, role), LinesOf(before, role), "that run");
}

/// Parameters and moments are stored as they are kept: bfloat16 has them in float32.
const char* StoredType(Precision precision) {
  return precision == Precision::kFloat64 ? "float64" : "float32";
}

}  // namespace

ResumeCheck CheckResume(const Config& now, const Config& before) {
  const std::string differences = Differences(now, before, KeyRole::kRun);
  if (!differences.empty()) return {"the configuration differs: " + differences, ""};
  const std::string rounding = Differences(now, before, KeyRole::kRounding);
  const std::string kept = StoredType(now.run.precision);
  const std::string stored = StoredType(before.run.precision);
  if (kept != stored) {
    return {"the configuration differs: " + rounding + "; its checkpoints hold parameters and " +
                "moments in " + stored + ", expected " + kept,
            ""};
  }
  return {"", rounding};
}

}  // namespace troupe
