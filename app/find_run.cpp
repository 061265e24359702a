#include "app/find_run.hpp"

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

/// Returns the newest NAME-TIME in `folder`, of any name if `name` is empty; "" if there is none.
std::string NewestOf(const fs::path& folder, const std::string& name) {
  static const std::regex kRun(R"((.+)-(\d{8}-\d{6})(?:-(\d{1,9}))?)");
  std::tuple<std::string, int> newest;
  std::string path;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    const std::string own = entry.path().filename().string();
    std::smatch parts;
    if (!std::regex_match(own, parts, kRun)) continue;
    if (!name.empty() && parts[1].str() != name) continue;
    const std::tuple<std::string, int> its = {parts[2].str(),
                                              parts[3].matched ? std::stoi(parts[3].str()) : 1};
    if (path.empty() || its > newest) {
      newest = its;
      path = entry.path().string();
    }
  }
  return path;
}

/// Replaces the link atomically: readers always find one.
void PutLink(const fs::path& target, const fs::path& link) {
  std::error_code error;
  const fs::path fresh =
      link.parent_path() / ("." + std::string(kLatest) + "-" + std::to_string(getpid()));
  fs::create_directory_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) fs::remove(fresh, error);
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
  const std::string newest = NewestOf(kRuns, text);
  return newest.empty() ? text : newest;
}

void LinkLatest(const std::string& run) {
  std::error_code error;
  const fs::path real = fs::canonical(run, error);
  if (error) return;
  const fs::path link = real.parent_path() / kLatest;
  const fs::file_status there = fs::symlink_status(link, error);
  if (fs::exists(there) && !fs::is_symlink(there)) return;
  PutLink(real.filename(), link);
}

void UnlinkLatest(const std::string& run) {
  fs::path path = fs::path(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const fs::path link = path.parent_path() / kLatest;
  std::error_code error;
  if (fs::read_symlink(link, error) != path.filename() || error) return;
  const std::string newest = NewestOf(link.parent_path(), "");
  if (newest.empty()) {
    fs::remove(link, error);
  } else {
    PutLink(fs::path(newest).filename(), link);
  }
}

}  // namespace troupe
