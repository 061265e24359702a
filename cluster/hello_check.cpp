#include "cluster/hello_check.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <sstream>

#include "cluster/text.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMostKeys = 8;
constexpr std::size_t kLongestValue = 80;

/// Parses lines "key = value".
std::map<std::string, std::string> ReadLines(const std::string& config) {
  std::map<std::string, std::string> values;
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    if (equals == std::string::npos) {
      if (!line.empty()) values[line];
    } else {
      values[line.substr(0, equals)] = line.substr(equals + 3);
    }
  }
  return values;
}

std::string Shortened(const std::string& value) {
  return value.size() <= kLongestValue ? value : value.substr(0, kLongestValue) + "...";
}

std::string Described(const Claim& claim) { return claim.hello.name + " (" + claim.from + ")"; }

std::string DescribedWithPid(const Claim& claim) {
  return claim.hello.name + " (" + claim.from + ", pid " + std::to_string(claim.hello.pid) + ")";
}

ProcessId ProcessOf(const Claim& claim) { return claim.hello.process; }

/// `claims` are sorted by process.
std::optional<std::string> CheckNumbers(const Hello& first, const std::vector<Claim>& claims) {
  for (const Claim& claim : claims) {
    const Hello& hello = claim.hello;
    if (hello.num_processes != first.num_processes) {
      return Described(claim) + " expects " + std::to_string(hello.num_processes) + " processes, " +
             first.name + " " + std::to_string(first.num_processes);
    }
    if (hello.process < 0 || hello.process >= first.num_processes) {
      return Described(claim) + " joined as process " + std::to_string(hello.process) +
             ", expected 0 to " + std::to_string(first.num_processes - 1);
    }
    if (hello.process == 0)
      return "two processes joined as process 0: " + first.name + " and " + DescribedWithPid(claim);
  }
  const auto twice = std::ranges::adjacent_find(claims, {}, ProcessOf);
  if (twice == claims.end()) return std::nullopt;
  return "two processes joined as process " + std::to_string(ProcessOf(*twice)) + ": " +
         DescribedWithPid(*twice) + " and " + DescribedWithPid(*(twice + 1));
}

}  // namespace

std::string DescribeDifferences(const std::string& config, const std::string& first_config,
                                const std::string& first_name) {
  const auto values = ReadLines(config);
  const auto first_values = ReadLines(first_config);
  std::set<std::string> keys;
  for (const auto& [key, value] : values) {
    const auto other = first_values.find(key);
    if (other == first_values.end() || other->second != value) keys.insert(key);
  }
  for (const auto& [key, value] : first_values)
    if (!values.contains(key)) keys.insert(key);
  std::string text;
  std::size_t num_listed = 0;
  for (const std::string& key : keys) {
    if (num_listed++ == kMostKeys) break;
    const auto value = values.find(key);
    const auto first_value = first_values.find(key);
    text += (text.empty() ? "" : "; ") + key +
            (value == values.end() ? " is not set, " : " is " + Shortened(value->second) + ", ") +
            first_name +
            (first_value == first_values.end() ? " does not set it"
                                               : " has " + Shortened(first_value->second));
  }
  if (keys.size() > kMostKeys) text += "; and " + std::to_string(keys.size() - kMostKeys) + " more";
  return text;
}

std::optional<JoinProblem> FindMismatch(const Hello& first, std::vector<Claim> claims) {
  std::ranges::stable_sort(claims, {}, ProcessOf);
  if (const auto problem = CheckNumbers(first, claims)) return JoinProblem{*problem};
  for (const Claim& claim : claims) {
    if (claim.hello.build != first.build) {
      return JoinProblem{Described(claim) + " is built from " + claim.hello.build + ", " +
                             first.name + " from " + first.build,
                         JoinFault::kBuild};
    }
  }
  for (const Claim& claim : claims) {
    if (claim.hello.config == first.config) continue;
    const std::string differences =
        DescribeDifferences(claim.hello.config, first.config, first.name);
    return JoinProblem{"the configuration of " + Described(claim) + " differs from that of " +
                       first.name + ": " +
                       (differences.empty() ? "the order of its lines" : differences)};
  }
  return std::nullopt;
}

JoinProblem OtherRun(const Hello& first, const std::vector<Claim>& claims) {
  std::vector<std::string> names;
  for (const Claim& claim : claims)
    if (claim.hello.generation > 0) names.push_back(claim.hello.name);
  return {Enumerate(names) + " would go on with a run that has begun before, " + first.name +
          " begins a new one: start it with --resume and the directory of that run"};
}

std::vector<ProcessId> AbsentFrom(const std::vector<Claim>& claims, int num_processes) {
  std::vector<ProcessId> absent;
  for (ProcessId process = 1; process < num_processes; ++process) {
    if (std::ranges::find(claims, process, ProcessOf) == claims.end()) absent.push_back(process);
  }
  return absent;
}

}  // namespace troupe
