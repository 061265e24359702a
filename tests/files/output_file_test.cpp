#include "files/output_file.hpp"

#include <filesystem>
#include <stdexcept>
#include <string_view>

#include <catch2/catch.hpp>

#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::EndsWith;

namespace troupe {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST_CASE("a replaced file has the new bytes and leaves no other file in its folder", "[files]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  WriteBytes(path, "old and longer");
  ReplaceFile(path, [](OutputFile& file) {
    file.Write(Bytes("new"));
    file.Write({});
    file.Write(Bytes(" bytes"));
  });
  CHECK(ReadBytes(path) == "new bytes");
  CHECK(directory.num_files() == 1);
}

TEST_CASE("the old file stays until the new one is complete", "[files]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  WriteBytes(path, "old");
  ReplaceFile(path, [&path](OutputFile& file) {
    file.Write(Bytes("new"));
    file.Sync();
    CHECK(ReadBytes(path) == "old");
    CHECK(ReadBytes(path + ".tmp") == "new");
  });
  CHECK(ReadBytes(path) == "new");
}

TEST_CASE("an error while writing keeps the old file and removes the new one", "[files]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  WriteBytes(path, "old");
  CHECK_THROWS_WITH(ReplaceFile(path,
                                [](OutputFile& file) {
                                  file.Write(Bytes("half"));
                                  throw std::runtime_error("no more");
                                }),
                    "no more");
  CHECK(ReadBytes(path) == "old");
  CHECK(directory.num_files() == 1);
}

TEST_CASE("a name that cannot be taken is reported and leaves nothing", "[files]") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.File("a"));
  CHECK_THROWS_WITH(ReplaceFile(directory.File("a"), [](OutputFile&) {}),
                    EndsWith("/a: cannot replace: Is a directory; choose the name of a file"));
  CHECK(directory.num_files() == 1);
  CHECK_THROWS_WITH(ReplaceFile("/nowhere/a", "text"),
                    "/nowhere/a.tmp: cannot create: No such file or directory");
  ReplaceFile(directory.File("b"), "text");
  CHECK(ReadBytes(directory.File("b")) == "text");
}

TEST_CASE("a full disk is an error of the write", "[files]") {
  OutputFile file("/dev/full", FileOpening::kAppend);
  CHECK_THROWS_WITH(file.Write(Bytes("x")),
                    "/dev/full: cannot write: No space left on device; free some space or choose "
                    "another place");
}

TEST_CASE("what a user names is written in place, whatever it is", "[files]") {
  const TemporaryDirectory directory;
  const std::string target = directory.File("target");
  WriteBytes(target, "old and longer");
  std::filesystem::create_symlink(target, directory.File("link"));
  WriteInPlace(directory.File("link"), "new");
  CHECK(ReadBytes(target) == "new");
  CHECK_THROWS_WITH(WriteInPlace("/dev/full", "x"),
                    Catch::Contains("/dev/full: cannot write: No "));
}

TEST_CASE("a flush that fails is an error", "[files]") {
  OutputFile file("/dev/full", FileOpening::kAppend);  // a device that cannot be flushed
  CHECK_THROWS_WITH(file.Sync(), "/dev/full: cannot flush: Invalid argument");
}

TEST_CASE("a file does not take its name before it is flushed", "[files]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  WriteBytes(path, "old");
  // A file that is closed already cannot be flushed.
  CHECK_THROWS_WITH(ReplaceFile(path, [](OutputFile& file) { file.Close(); }),
                    EndsWith("/a.tmp: cannot flush: Bad file descriptor"));
  CHECK(ReadBytes(path) == "old");
}

TEST_CASE("a closed file takes no more and may be closed again", "[files]") {
  const TemporaryDirectory directory;
  OutputFile file(directory.File("a"));
  file.Close();
  file.Close();
  CHECK_THROWS_WITH(file.Write(Bytes("x")), EndsWith("cannot write: Bad file descriptor"));
}

TEST_CASE("a link where a file is about to be written is replaced, and its target untouched",
          "[files]") {
  const TemporaryDirectory directory;
  const std::string target = directory.File("target");
  const std::string path = directory.File("weights");
  WriteBytes(target, "precious");
  std::filesystem::create_symlink(target, path + ".tmp");
  ReplaceFile(path, [](OutputFile& file) { file.Write(Bytes("new")); });
  CHECK(ReadBytes(target) == "precious");
  CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(path)));
  CHECK(ReadBytes(path) == "new");
  std::filesystem::create_symlink(target, directory.File("metrics"));
  CHECK_THROWS_WITH(OutputFile(directory.File("metrics"), FileOpening::kAppend),
                    Catch::Contains("metrics: cannot create: "));
}

}  // namespace
}  // namespace troupe
