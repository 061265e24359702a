#include "cli/doctor/shared.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookAgain{200};
constexpr int kLooks = 10;

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  return static_cast<bool>(file << text << std::flush);
}

bool Holds(const std::string& path, const std::string& text) {
  std::ifstream file(path);
  std::string found;
  return file >> found && found == text;
}

/// The outermost missing folder of `path`; empty if all exist.
fs::path FirstMissing(fs::path path) {
  fs::path missing;
  std::error_code ignored;
  while (!path.empty() && !fs::exists(path, ignored)) {
    missing = path;
    path = path.parent_path();
  }
  return missing;
}

}  // namespace

SharedToken::SharedToken(const std::string& directory, const std::string& name)
    : folder_(directory + "/" + name), made_(FirstMissing(folder_)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw std::runtime_error(folder_ + ": cannot create: " + error.message());
  if (Write(folder_ + "/token", name)) return;
  fs::remove_all(made_, error);
  throw std::runtime_error(folder_ + "/token: cannot be written");
}

SharedToken::~SharedToken() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  // Removes the folders that were made, as far as they are empty.
  for (fs::path path = fs::path(folder_).parent_path();
       path.string().size() >= made_.size() && !made_.empty(); path = path.parent_path()) {
    if (!fs::remove(path, ignored)) break;
  }
}

std::string LookForToken(const std::string& directory, const std::string& name,
                         const std::string& mark) {
  const std::string folder = directory + "/" + name;
  for (int look = 1; !Holds(folder + "/token", name); ++look) {
    if (look == kLooks) return "the file that the first process wrote there is missing";
    std::this_thread::sleep_for(kLookAgain);
  }
  return Write(folder + "/" + mark, mark) ? "" : folder + "/" + mark + ": cannot be written";
}

}  // namespace troupe
