#include "checkpoint/manifest.hpp"

#include <filesystem>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace troupe {
namespace {

const ShardAddress kShard = {.module = "language", .pp = 2, .dp = 0, .tp = 1, .cp = 3, .rank = 7};
const std::string kFile = "language.s2-dp0-cp3-tp1.safetensors";

TEST_CASE("a shard's file is named after its place, not its device", "[checkpoint]") {
  CHECK(ShardFileName(kShard) == kFile);
}

TEST_CASE("a manifest is read as it was written", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  CHECK_FALSE(ReadManifest(folder));
  CHECK_FALSE(ReadManifest(directory.File("nowhere")));
  WriteBytes(directory.File(kFile), "12345");
  const CheckpointManifest manifest = MakeManifest(folder, 120, "a \"hash\"", {kShard});
  CHECK(manifest.files == std::vector<CheckpointFile>{{kFile, 5}});
  WriteManifest(folder, manifest);
  CHECK(ReadManifest(folder) == manifest);
  CHECK(directory.num_files() == 2);
}

TEST_CASE("a manifest is not written over files that are not as it says", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  CHECK_THROWS_WITH(MakeManifest(folder, 1, "", {kShard}),
                    EndsWith(kFile + ": not there, expected the checkpoint of language.s2 dp0 tp1 "
                                     "cp3 rank 7"));
  const CheckpointManifest manifest{.step = 1, .config_hash = "", .files = {{kFile, 5}}};
  CHECK_THROWS_WITH(WriteManifest(folder, manifest),
                    EndsWith(kFile + ": not there, expected 5 bytes"));
  std::filesystem::create_directory(directory.File(kFile));
  CHECK_THROWS_WITH(WriteManifest(folder, manifest),
                    EndsWith(kFile + ": not there, expected 5 bytes"));
  std::filesystem::remove(directory.File(kFile));
  WriteBytes(directory.File(kFile), "1234");
  CHECK_THROWS_WITH(WriteManifest(folder, manifest), EndsWith(": 4 bytes, expected 5 bytes"));
  CHECK_THROWS_WITH(WriteManifest(folder, {.step = -1, .config_hash = "", .files = {{kFile, 4}}}),
                    EndsWith("manifest.json: step is not an integer from 0 to 2^63 - 1"));
  CHECK_THROWS_WITH(WriteManifest(folder, {.step = 1, .config_hash = "", .files = {}}),
                    EndsWith("manifest.json: files is not a list of files"));
  CHECK_FALSE(ReadManifest(folder));
}

struct Hostile {
  std::string text;
  std::string error;
};

std::string WithFiles(const std::string& files) {
  return R"({"format":"troupe-sharded-1","step":1,"config":"","files":)" + files + "}";
}

const std::vector<Hostile> kHostile = {
    {"", "manifest does not begin with '{'"},
    {"[]", "manifest does not begin with '{'"},
    {"{", "manifest is not valid JSON at byte 2"},
    {std::string("{}\0x", 4), "manifest has a zero byte at byte 3"},
    {"{} {}", "manifest is not valid JSON at byte 4"},
    {"{}", "has no format"},
    {R"({"format":"other"})", "expected format \"troupe-sharded-1\", got \"other\""},
    {R"({"format":"troupe-sharded-1","format":"troupe-sharded-1"})",
     "manifest has the key \"format\" twice"},
    {R"({"format":"troupe-sharded-1","step":1,"config":"","files":[{}],"more":1})",
     "has keys besides format, step, config and files"},
    {R"({"format":"troupe-sharded-1","step":1e999,"config":"","files":[{}]})",
     "manifest holds a number that is too large"},
    {R"({"format":"troupe-sharded-1","step":1.0,"config":"","files":[{}]})",
     "step is not an integer from 0 to 2^63 - 1"},
    {R"({"format":"troupe-sharded-1","step":9223372036854775808,"config":"","files":[{}]})",
     "step is not an integer from 0 to 2^63 - 1"},
    {R"({"format":"troupe-sharded-1","step":1,"config":1,"files":[{}]})", "config is not a string"},
    {WithFiles("{}"), "files is not a list of files"},
    {WithFiles("[]"), "files is not a list of files"},
    {WithFiles("[1]"), "files holds something other than name, bytes"},
    {WithFiles(R"([{"name":"a"}])"), "files holds something other than name, bytes"},
    {WithFiles(R"([{"name":"a","size":1}])"), "has no bytes"},
    {WithFiles(R"([{"name":"a","bytes":[[1]]}])"), "manifest is nested deeper than 3"},
    {WithFiles(R"([{"name":"a","bytes":-1}])"), "bytes is not an integer from 0 to 2^63 - 1"},
    {WithFiles(R"([{"name":"a","bytes":1},{"name":"a","bytes":1}])"), "lists \"a\" twice"},
    {WithFiles(R"([{"name":"","bytes":1}])"), "expected the name of a file, got \"\""},
    {WithFiles(R"([{"name":"..","bytes":1}])"), "expected the name of a file, got \"..\""},
    {WithFiles(R"([{"name":"../a","bytes":1}])"), "expected the name of a file, got \"../a\""},
    {WithFiles(R"([{"name":"/etc/a","bytes":1}])"), "expected the name of a file, got \"/etc/a\""},
    {WithFiles(R"([{"name":"a\nb/","bytes":1}])"), "expected the name of a file, got \"a\\nb/\""},
};

TEST_CASE("what is no manifest is refused in one line that names it", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("manifest.json");
  for (const Hostile& hostile : kHostile) {
    CAPTURE(hostile.text);
    WriteBytes(path, hostile.text);
    CHECK_THROWS_WITH(ReadManifest(directory.File("")), path + ": " + hostile.error);
  }
}

TEST_CASE("a manifest that is no file, or of any size, is refused without reading it",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("manifest.json");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(ReadManifest(directory.File("")), path + ": not a regular file");
  std::filesystem::remove(path);
  WriteBytes(path, "{");
  std::filesystem::resize_file(path, 1ULL << 40);  // sparse
  CHECK_THROWS_WITH(ReadManifest(directory.File("")),
                    path + ": file has 1099511627776 bytes, expected at most 16777216");
}

TEST_CASE("whatever byte of a manifest is changed or cut, it is read or refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  WriteBytes(directory.File(kFile), "12345");
  WriteManifest(folder, MakeManifest(folder, 120, "hash", {kShard}));
  const std::string path = directory.File("manifest.json");
  const std::string whole = ReadBytes(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char byte : {'\0', '\xff', '"', '{', '9', '/'}) {
      std::string changed = whole;
      changed[i] = byte;
      WriteBytes(path, changed);
      try {
        const auto manifest = ReadManifest(folder);
        REQUIRE(manifest);
        for (const CheckpointFile& file : manifest->files) {
          REQUIRE(file.name.find('/') == std::string::npos);
        }
      } catch (const std::runtime_error& error) {
        REQUIRE_THAT(error.what(), StartsWith(path + ": "));
      }
    }
    if (whole.substr(i) == "}\n" || whole.substr(i) == "\n") continue;
    WriteBytes(path, whole.substr(0, i));
    CHECK_THROWS_AS(ReadManifest(folder), std::runtime_error);
  }
}

}  // namespace
}  // namespace troupe
