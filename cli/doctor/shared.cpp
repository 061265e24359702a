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

}  // namespace

MadeFolders::MadeFolders(const std::string& directory) {
  std::error_code error;
  fs::path folder = directory;
  if (!folder.has_filename()) folder = folder.parent_path();
  for (; !folder.empty() && !fs::exists(folder, error); folder = folder.parent_path())
    made_.push_back(folder);
  fs::create_directories(directory, error);
  if (error) throw std::runtime_error(directory + ": cannot create: " + error.message());
}

MadeFolders::~MadeFolders() {
  std::error_code ignored;
  for (const fs::path& folder : made_) fs::remove(folder, ignored);
}

SharedToken::SharedToken(const std::string& directory, const std::string& name)
    : folder_(directory + "/" + name), made_(folder_) {
  if (Write(folder_ + "/token", name)) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  throw std::runtime_error(folder_ + "/token: cannot be written");
}

SharedToken::~SharedToken() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
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
