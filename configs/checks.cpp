#include "configs/checks.hpp"

#include <iterator>
#include <set>

#include "layout/text.hpp"

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

std::string DivisorHint(const std::string& key, std::int64_t number, std::int64_t got) {
  constexpr std::size_t kMostListed = 8;
  std::set<std::int64_t> divisors;
  for (std::int64_t low = 1; low * low <= number; ++low) {
    if (number % low == 0) divisors.insert({low, number / low});
  }
  if (divisors.empty()) return "";
  if (divisors.size() > kMostListed) {
    const auto above = divisors.upper_bound(got);
    const std::string below = std::to_string(*std::prev(above));
    if (above == divisors.end()) return "; the nearest is " + below;
    return "; the nearest are " + below + " and " + std::to_string(*above);
  }
  return "; " + key.substr(key.rfind('.') + 1) + " can be " + AnyOf(divisors);
}

void ExpectMultiple(const Named& number, const Named& divisor, Report& report) {
  if (!report.Good({number.key, divisor.key}) || divisor.value < 1) return;
  if (number.value % divisor.value == 0) return;
  const bool blame_number = report.Later(number.key, divisor.key) == number.key;
  const auto& [key, value] = blame_number ? number : divisor;
  const auto& [other_key, other] = blame_number ? divisor : number;
  const std::string relation = blame_number ? "expected a multiple of " : "expected a divisor of ";
  report.Add(key, relation + other_key + " = " + std::to_string(other) + ", got " +
                      std::to_string(value) + (blame_number ? "" : DivisorHint(key, other, value)));
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
