#include "files/file_error.hpp"

#include <cerrno>
#include <filesystem>

#include <catch2/catch.hpp>

#include "files/output_file.hpp"
#include "tests/checkpoint/temporary_directory.hpp"

namespace troupe {
namespace {

TEST_CASE("a refusal of the system names path, reason and next step", "[files]") {
  const auto text = [](int error, const std::string& step = "") {
    return std::string(FileError("runs/a", "create", error, step).what());
  };
  CHECK(text(EACCES) ==
        "runs/a: cannot create: Permission denied; change its permissions or choose another place");
  CHECK(text(ENOSPC) ==
        "runs/a: cannot create: No space left on device; free some space or choose another place");
  CHECK(text(ENAMETOOLONG) == "runs/a: cannot create: File name too long; choose a shorter name");
  CHECK(text(EIO) == "runs/a: cannot create: Input/output error");
  CHECK(text(EACCES, "ask") == "runs/a: cannot create: Permission denied; ask");
  CHECK(FileError("a", "read", std::make_error_code(std::errc::io_error)).what() ==
        std::string("a: cannot read: Input/output error"));
}

TEST_CASE("folders that cannot be made or looked at are named", "[files]") {
  const TemporaryDirectory directory;
  MakeFolders(directory.File("a/b"));
  MakeFolders(directory.File("a/b"));
  CHECK(IsThere(directory.File("a/b")));
  CHECK_FALSE(IsThere(directory.File("a/c")));
  const std::string long_name = directory.File(std::string(300, 'x'));
  CHECK_THROWS_WITH(MakeFolders(long_name),
                    long_name + ": cannot create: File name too long; choose a shorter name");
  CHECK_THROWS_WITH(IsThere(long_name),
                    long_name + ": cannot read: File name too long; choose a shorter name");
  WriteBytes(directory.File("file"), "");
  CHECK_FALSE(IsThere(directory.File("file/a")));
  CHECK_THROWS_WITH(
      MakeFolders(directory.File("file/a")),
      directory.File("file/a") + ": cannot create: Not a directory; a part of the path is a file");
}

}  // namespace
}  // namespace troupe
