// Plans as files: plan1.toml, plan2.toml, ..., each of which extends the configuration.
#pragma once

#include <string>
#include <vector>

#include "configs/loader.hpp"
#include "plan/search/planner.hpp"

namespace troupe {

/// The most plans that a table may have, and so the largest number of a file.
inline constexpr int kMostPlans = 64;

/// The configuration that was planned, and what for.
struct PlannedFile {
  std::string path;
  const LoadedConfig& loaded;
  std::string device;
};

/// Writes a file for each plan into the folder `out`, removes those of more plans that an earlier run left
/// there, and prints what it did. Throws LaunchError, with --out, if a file would replace one that is not of
/// a plan, and FileError.
void WritePlans(const std::string& out, const PlannedFile& planned, const std::vector<Plan>& plans);

}  // namespace troupe
