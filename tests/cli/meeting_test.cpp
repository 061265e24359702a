#include "cli/meeting.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

/// The number of a process that has ended.
std::string GonePid() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return std::to_string(child);
}

bool Exists(const std::string& path) { return std::filesystem::exists(path); }

}  // namespace

TEST_CASE("a key's folder is named after its process and gone after it", "[cli]") {
  const ScratchFolder folder;
  std::string key;
  {
    const Meeting meeting{std::filesystem::path(folder.path())};
    key = meeting.key_file();
    CHECK_THAT(key, Catch::StartsWith(folder / "troupe-" + std::to_string(getpid()) + "-"));
    CHECK(Exists(key));
  }
  CHECK_FALSE(Exists(std::filesystem::path(key).parent_path()));
}

TEST_CASE("what a killed process left of its meeting is removed by the next", "[cli]") {
  const ScratchFolder folder;
  const auto make = [&](const std::string& name) {
    std::filesystem::create_directory(folder / name);
    folder.Write(name + "/key", "secret");
    return folder / name;
  };
  const std::string gone = GonePid();
  const std::string left = make("troupe-" + gone + "-abcdef");
  const std::string locked = make("troupe-" + gone + "-locked");
  const std::string alive = make("troupe-" + std::to_string(getpid()) + "-abcdef");
  const std::string others = make("troupe-" + gone + "-backup-1");
  std::filesystem::create_directory_symlink(others, folder / "troupe-" + gone + "-linked");
  const int lock = open(locked.c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(flock(lock, LOCK_EX) == 0);
  const Meeting meeting{std::filesystem::path(folder.path())};
  CHECK_FALSE(Exists(left));
  CHECK(Exists(locked + "/key"));  // of a container that shares the folder
  CHECK(Exists(alive + "/key"));
  CHECK(Exists(others + "/key"));
  close(lock);
}

}  // namespace troupe
