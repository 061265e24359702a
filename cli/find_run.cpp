#include "cli/find_run.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";
constexpr const char* kLatest = "latest";

/// The newest runs/NAME-TIME; empty when there is none.
std::string NewestOf(const std::string& name) {
  static const std::regex kTime(R"((\d{8}-\d{6})(?:-(\d{1,9}))?)");
  std::tuple<std::string, int> newest;
  std::string path;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRuns, none)) {
    const std::string own = entry.path().filename().string();
    if (!own.starts_with(name + "-")) continue;
    const std::string time = own.substr(name.size() + 1);
    std::smatch parts;
    if (!std::regex_match(time, parts, kTime)) continue;
    const std::tuple<std::string, int> its = {parts[1].str(),
                                              parts[2].matched ? std::stoi(parts[2].str()) : 1};
    if (path.empty() || its > newest) {
      newest = its;
      path = entry.path().string();
    }
  }
  return path;
}

}  // namespace

std::string FindRun(const std::string& text) {
  std::error_code error;
  if (text.empty()) return text;
  if (fs::is_symlink(fs::symlink_status(text, error))) {
    return (fs::path(text).parent_path() / fs::read_symlink(text, error)).string();
  }
  if (fs::exists(text, error) || text.find('/') != std::string::npos) return text;
  const std::string inside = std::string(kRuns) + "/" + text;
  if (fs::exists(inside, error)) return FindRun(inside);
  const std::string newest = NewestOf(text);
  return newest.empty() ? text : newest;
}

void LinkLatest(const std::string& run) {
  std::error_code error;
  const fs::path real = fs::canonical(run, error);
  if (error) return;
  const fs::path link = real.parent_path() / kLatest;
  const fs::file_status there = fs::symlink_status(link, error);
  if (fs::exists(there) && !fs::is_symlink(there)) return;
  // A name of its own first: a link cannot be written over, and a moment without one would be seen.
  const fs::path fresh =
      real.parent_path() / ("." + std::string(kLatest) + "-" + std::to_string(getpid()));
  fs::create_directory_symlink(real.filename(), fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) fs::remove(fresh, error);
}

}  // namespace troupe
