#include "configs/checks.hpp"

namespace troupe {

std::string KeyOf(const ModuleConfig& module, const std::string& key) {
  return "modules." + module.name + "." + key;
}

std::string KeyOf(const EdgeConfig& edge, const std::string& key) {
  const std::string name = "edges." + edge.from + "." + edge.to;
  return key.empty() ? name : name + "." + key;
}

const Layout& LayoutOf(const Config& config, const ModuleConfig& module) {
  const ModuleConfig* host = module.inline_in ? config.Find(*module.inline_in) : nullptr;
  return host == nullptr ? module.layout : host->layout;
}

void ExpectMultiple(const Named& number, const Named& divisor, Report& report) {
  if (!report.Good({number.key, divisor.key}) || divisor.value < 1) return;
  if (number.value % divisor.value == 0) return;
  const bool blame_number = report.Later(number.key, divisor.key) == number.key;
  const auto& [key, value] = blame_number ? number : divisor;
  const auto& [other_key, other] = blame_number ? divisor : number;
  const std::string relation = blame_number ? "expected a multiple of " : "expected a divisor of ";
  report.Add(
      key, relation + other_key + " = " + std::to_string(other) + ", got " + std::to_string(value));
}

void CheckConfig(const Config& config, Report& report) {
  CheckCluster(config, report);
  CheckPlacement(config, report);
  CheckModules(config, report);
  CheckGraph(config, report);
  CheckEdges(config, report);
  CheckRun(config, report);
  CheckSchedule(config, report);
}

}  // namespace troupe
