#include "app/run_folders.hpp"

#include <filesystem>
#include <map>
#include <sstream>
#include <system_error>

#include "app/resume.hpp"
#include "checkpoint/weights_folder.hpp"
#include "files/output_file.hpp"
#include "files/text_file.hpp"
#include "kinds/foreign.hpp"

namespace troupe {

static std::string PathIn(const std::string& run) {
  return (std::filesystem::path(run) / kFoldersFile).string();
}

/// Digests by key, from lines "key = digest".
static std::map<std::string, std::string> ByKey(const std::string& lines) {
  std::map<std::string, std::string> digests;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t middle = line.find(" = ");
    if (middle != line.npos) digests[line.substr(0, middle)] = line.substr(middle + 3);
  }
  return digests;
}

void NoteFolders(const std::string& run, const Config& config) {
  std::error_code unknown;
  if (!ReadsWeights(config) || std::filesystem::exists(PathIn(run), unknown)) return;
  ReplaceFile(PathIn(run), WeightsDigests(config));
}

void RequireSameFolders(const std::string& run, const Config& config,
                        const std::set<std::string>& accepted) {
  if (!WhyNotOpened(PathIn(run)).empty()) return;
  const auto before = ByKey(ReadWholeFile(PathIn(run)));
  for (const auto& [key, digest] : ByKey(WeightsDigests(config))) {
    const auto found = before.find(key);
    if (found == before.end() || found->second == digest) continue;
    if (accepted.contains(AcceptedBy(key))) continue;
    throw ModelFolderError(key + " of the folder have changed since the run started: expected " +
                           found->second + ", got " + digest);
  }
}

}  // namespace troupe
