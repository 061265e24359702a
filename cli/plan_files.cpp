#include "cli/plan_files.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>

#include "cluster/variables.hpp"
#include "configs/toml_value.hpp"
#include "files/file_error.hpp"
#include "files/output_file.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// Returns whether plans decide a key, also where SettingsOf does not have it: a module that runs inside
/// another one has no ranks.
bool IsPlanned(const std::string& key, const Config& config) {
  if (key == "schedule.chunks") return true;
  return std::ranges::any_of(config.modules, [&](const ModuleConfig& module) {
    const std::string prefix = "modules." + module.name + ".";
    return key == prefix + "ranks" || key == prefix + "inline_in" ||
           key.starts_with(prefix + "layout.") || key == prefix + "layout";
  });
}

/// The settings of a plan over the configuration, and those of the command line below them, by key.
std::map<std::string, std::string> ValuesOf(const Plan& plan, const LoadedConfig& loaded) {
  std::map<std::string, std::string> values;
  for (const auto& [key, origin] : loaded.origins) {
    if (origin.place.argument && !IsPlanned(key, loaded.config)) values[key] = origin.value;
  }
  for (const std::string& setting : SettingsOf(loaded.config, plan.job)) {
    const auto equals = setting.find('=');
    values[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return values;
}

/// How a file of a plan begins.
const std::string kFirstWords = "# Made by troupe plan: ";

bool IsOfPlan(const std::string& path) {
  std::ifstream file(path);
  std::string begin(kFirstWords.size(), ' ');
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) &&
         begin == kFirstWords;
}

/// Refuses to replace what is not a file of a plan, such as the configuration itself.
void RefuseOtherFile(const std::string& path) {
  if (!std::filesystem::exists(path) || IsOfPlan(path)) return;
  throw LaunchError("--out: " + path + " is there and was not made by troupe plan");
}

/// The plan as a file that extends the configuration.
std::string FileOf(const Plan& plan, const LoadedConfig& loaded, const std::string& extends,
                   const std::string& device) {
  std::string text = kFirstWords + Formatted("%.1f", plan.cost.step_s * 1e3) +
                     " ms per step by the cost model, on " + Counted(plan.job.ranks, "device") +
                     " of " + device + "\nschema = 1\nextends = [" + Quoted(extends) + "]\n\n";
  const auto values = ValuesOf(plan, loaded);
  for (const auto& [key, value] : values) {
    if (!key.starts_with("edges.")) text += key + " = " + value + "\n";
  }
  for (const EdgeConfig& edge : loaded.config.edges) {
    const std::string prefix = "edges." + edge.from + "." + edge.to + ".";
    std::string lines;
    for (const auto& [key, value] : values) {
      if (key == prefix + "from" || key == prefix + "to") continue;
      if (key.starts_with(prefix)) lines += key.substr(prefix.size()) + " = " + value + "\n";
    }
    if (lines.empty()) continue;
    text += "\n[[edges]]\nfrom = " + Quoted(edge.from) + "\nto = " + Quoted(edge.to) + "\n" + lines;
  }
  return text;
}

/// Removes the files of an earlier run from a number on, but not the one that the plans extend. Returns how
/// many there were.
int RemoveFrom(int number, const std::function<std::filesystem::path(int)>& path_of,
               const std::string& extended) {
  int removed = 0;
  std::error_code error;
  for (; number <= kMostPlans; ++number) {
    const std::filesystem::path path = path_of(number);
    if (!IsOfPlan(path.string()) || std::filesystem::equivalent(path, extended, error)) continue;
    removed += std::filesystem::remove(path, error) ? 1 : 0;
  }
  return removed;
}

}  // namespace

void WritePlans(const std::string& out, const PlannedFile& planned,
                const std::vector<Plan>& plans) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw FileError(out, "create", error.value());
  const fs::path folder = fs::canonical(out);  // ".." leads from where a link leads to
  const std::string extends = fs::relative(fs::canonical(planned.path), folder).generic_string();
  const auto path_of = [&folder](int number) {
    return folder / ("plan" + std::to_string(number) + ".toml");
  };
  for (std::size_t i = 1; i <= plans.size(); ++i) {
    const fs::path path = path_of(static_cast<int>(i));
    RefuseOtherFile(path.string());
    if (fs::equivalent(path, planned.path, error)) {
      throw LaunchError("--out: would replace " + planned.path +
                        ", which the plans extend; expected another folder");
    }
  }
  int number = 0;
  for (const Plan& plan : plans) {
    const fs::path path = path_of(++number);
    WriteInPlace(path.string(), FileOf(plan, planned.loaded, extends, planned.device));
    if (LoadConfig(path.string()).config != plan.config) {
      throw std::logic_error(path.string() + ": loads as another configuration than was planned");
    }
  }
  const int removed = RemoveFrom(number + 1, path_of, planned.path);
  std::printf(
      "wrote %s to %s%s\n",
      plans.size() == 1 ? "plan1.toml"
                        : ("plan1.toml to plan" + std::to_string(number) + ".toml").c_str(),
      out.c_str(),
      removed > 0 ? (", removed " + Counted(removed, "file") + " of more plans").c_str() : "");
}

}  // namespace troupe
