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
const std::string kSum(64, '7');

TEST_CASE("a shard's file is named after its place, not its device", "[checkpoint]") {
  CHECK(ShardFileName(kShard) == kFile);
}

TEST_CASE("a manifest is read as it was written", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  CHECK_FALSE(ReadManifest(folder));
  CHECK_FALSE(ReadManifest(directory.File("nowhere")));
  WriteBytes(directory.File(kFile), "12345");
  const CheckpointManifest manifest = MakeManifest(folder, 120, "a \"hash\"", {{kShard, kSum}});
  CHECK(manifest.files == std::vector<CheckpointFile>{{kFile, 5, kSum}});
  WriteManifest(folder, manifest);
  CHECK(ReadManifest(folder) == manifest);
  CHECK(directory.num_files() == 2);
}

TEST_CASE("a manifest is not written over files that are not as it says", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  CHECK_THROWS_WITH(MakeManifest(folder, 1, "", {{kShard, kSum}}),
                    EndsWith(kFile + ": not there, expected the checkpoint of language.s2 dp0 tp1 "
                                     "cp3 rank 7"));
  const CheckpointManifest manifest{.step = 1, .config_hash = "", .files = {{kFile, 5, kSum}}};
  CHECK_THROWS_WITH(WriteManifest(folder, manifest),
                    EndsWith(kFile + ": not there, expected 5 bytes"));
  std::filesystem::create_directory(directory.File(kFile));
  CHECK_THROWS_WITH(WriteManifest(folder, manifest),
                    EndsWith(kFile + ": not there, expected 5 bytes"));
  std::filesystem::remove(directory.File(kFile));
  WriteBytes(directory.File(kFile), "1234");
  CHECK_THROWS_WITH(WriteManifest(folder, manifest), EndsWith(": 4 bytes, expected 5 bytes"));
  CHECK_THROWS_WITH(
      WriteManifest(folder, {.step = -1, .config_hash = "", .files = {{kFile, 4, kSum}}}),
      EndsWith("manifest.json: step is not an integer from 0 to 2^63 - 1"));
  CHECK_THROWS_WITH(WriteManifest(folder, {.step = 1, .config_hash = "", .files = {}}),
                    EndsWith("manifest.json: files is not a list of files"));
  CHECK_FALSE(ReadManifest(folder));
}

struct HostileManifest {
  std::string text;
  std::string error;
};

/// An entry of files.
std::string FileText(const std::string& name) {
  return R"({"name":")" + name + R"(","bytes":1,"sha256":")" + kSum + "\"}";
}

std::string WithFiles(const std::string& files) {
  return R"({"format":"troupe-sharded-2","step":1,"config":"","files":)" + files +
         R"(,"sha256":")" + kSum + "\"}";
}

const std::vector<HostileManifest> kHostileManifests = {
    {"", "manifest does not begin with '{'"},
    {"[]", "manifest does not begin with '{'"},
    {"{", "manifest is not valid JSON at byte 2"},
    {std::string("{}\0x", 4), "manifest has a zero byte at byte 3"},
    {"{} {}", "manifest is not valid JSON at byte 4"},
    {"{}", "has no format"},
    {R"({"format":"other"})", "expected format \"troupe-sharded-2\", got \"other\""},
    {R"({"format":"troupe-sharded-2","format":"troupe-sharded-2"})",
     "manifest has the key \"format\" twice"},
    {R"({"format":"troupe-sharded-2","step":1,"config":"","files":[{}],"sha256":"","more":1})",
     "must have exactly the keys format, step, config, files and sha256"},
    {R"({"format":"troupe-sharded-2","step":1e999,"config":"","files":[{}],"sha256":""})",
     "manifest holds a number that is too large"},
    {R"({"format":"troupe-sharded-2","step":1.0,"config":"","files":[{}],"sha256":""})",
     "step is not an integer from 0 to 2^63 - 1"},
    {R"({"format":"troupe-sharded-2","step":9223372036854775808,"config":"","files":[{}],"sha256":""})",
     "step is not an integer from 0 to 2^63 - 1"},
    {R"({"format":"troupe-sharded-2","step":1,"config":1,"files":[{}],"sha256":""})",
     "config is not a string"},
    {WithFiles("{}"), "files is not a list of files"},
    {WithFiles("[]"), "files is not a list of files"},
    {WithFiles("[1]"), "files holds something other than name, bytes, sha256"},
    {WithFiles(R"([{"name":"a","bytes":1}])"),
     "files holds something other than name, bytes, sha256"},
    {WithFiles(R"([{"name":"a","size":1,"sha256":""}])"), "has no bytes"},
    {WithFiles(R"([{"name":"a","bytes":[[1]]}])"), "manifest is nested deeper than 3"},
    {WithFiles(R"([{"name":"a","bytes":-1,"sha256":""}])"),
     "bytes is not an integer from 0 to 2^63 - 1"},
    {WithFiles(R"([{"name":"a","bytes":1,"sha256":1}])"), "sha256 is not a string"},
    {WithFiles(R"([{"name":"a","bytes":1,"sha256":"7A"}])"),
     "sha256 is not 64 digits from 0 to f, but \"7A\""},
    {WithFiles("[" + FileText("a") + "," + FileText("a") + "]"), "lists \"a\" twice"},
    {WithFiles("[" + FileText("a") + "]"), "was changed since it was written"},
    {R"({"format":"troupe-sharded-1","step":1,"config":"","files":[{"name":"a","bytes":1}]})",
     "was written by an earlier version, without checksums"},
    {WithFiles("[" + FileText(R"()") + "]"), "expected the name of a file, got \"\""},
    {WithFiles("[" + FileText(R"(..)") + "]"), "expected the name of a file, got \"..\""},
    {WithFiles("[" + FileText(R"(../a)") + "]"), "expected the name of a file, got \"../a\""},
    {WithFiles("[" + FileText(R"(/etc/a)") + "]"), "expected the name of a file, got \"/etc/a\""},
    {WithFiles("[" + FileText(R"(a\nb/)") + "]"), "expected the name of a file, got \"a\\nb/\""},
};

TEST_CASE("what is no manifest is refused in one line that names it", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("manifest.json");
  for (const HostileManifest& hostile : kHostileManifests) {
    CAPTURE(hostile.text);
    WriteBytes(path, hostile.text);
    CHECK_THROWS_WITH(ReadManifest(directory.File("")), path + ": " + hostile.error);
  }
}

TEST_CASE("a manifest that is a folder or too large is refused without reading beyond the limit",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("manifest.json");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(ReadManifest(directory.File("")), path + ": expected a regular file");
  std::filesystem::remove(path);
  WriteBytes(path, "{");
  std::filesystem::resize_file(path, 1ULL << 40);  // sparse
  CHECK_THROWS_WITH(ReadManifest(directory.File("")),
                    path + ": expected at most 16777216 bytes, got more");
}

TEST_CASE("whatever byte of a manifest is changed or cut, it is refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  WriteBytes(directory.File(kFile), "12345");
  const CheckpointManifest written = MakeManifest(folder, 120, "hash", {{kShard, kSum}});
  WriteManifest(folder, written);
  const std::string path = directory.File("manifest.json");
  const std::string whole = ReadBytes(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char byte : {'\0', '\xff', '"', '{', '9', '/'}) {
      std::string changed = whole;
      changed[i] = byte;
      if (changed == whole) continue;
      CAPTURE(changed);
      WriteBytes(path, changed);
      CHECK_THROWS_WITH(ReadManifest(folder), StartsWith(path + ": "));
    }
    if (whole.substr(i) == "}\n" || whole.substr(i) == "\n") continue;
    WriteBytes(path, whole.substr(0, i));
    CHECK_THROWS_AS(ReadManifest(folder), std::runtime_error);
  }
  // Blanks are not content.
  WriteBytes(path, "{ " + whole.substr(1));
  CHECK(ReadManifest(folder) == written);
}

TEST_CASE("a manifest without one of its files is refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  WriteBytes(directory.File("a"), "12345");
  WriteBytes(directory.File("b"), "12345");
  WriteManifest(folder, {.step = 1, .config_hash = "", .files = {{"a", 5, kSum}, {"b", 5, kSum}}});
  const std::string path = directory.File("manifest.json");
  std::string text = ReadBytes(path);
  const std::size_t end = text.find("  },\n");
  REQUIRE(end != std::string::npos);
  const std::size_t begin = text.find("  {\n");
  WriteBytes(path, text.erase(begin, end + 5 - begin));
  CHECK_THROWS_WITH(ReadManifest(folder), path + ": was changed since it was written");
}

}  // namespace
}  // namespace troupe
