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

/// What a shard has written into a file of 5 bytes.
StoredShard FiveBytes() {
  return {.file = kFile,
          .process = "n1",
          .bytes = 5,
          .sha256 = kSum,
          .header_sha256 = kSum,
          .tensors = {{TensorKind::kParameter, "language.a", {4, 2}, DType::kFloat32, 7}}};
}

const RunState kRun = {
    .step = 120,
    .steps = 1000,
    .configuration = "a = \"b\"\n",
    .data = {.place = 960, .group = 8, .rows = 600, .digest = "0123", .window = {70, 955}}};

TEST_CASE("a manifest is read as it was written", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  CHECK_FALSE(ReadManifest(folder));
  CHECK_FALSE(ReadManifest(directory.File("nowhere")));
  WriteBytes(directory.File(kFile), "12345");
  const CheckpointManifest manifest = MakeManifest(kRun, {{kShard, FiveBytes()}});
  CHECK(manifest.files == std::vector<CheckpointFile>{{kFile, "n1", 5, kSum, kSum}});
  CHECK(MakeManifest(kRun, {{kShard, FiveBytes()}, {kShard, {}}}) == manifest);  // stores nothing
  CHECK(manifest.tensors.at("parameter/language.a") ==
        SavedTensor{StoredType::kFloat32, {4, 2}, 7, {0}});
  WriteManifest(folder, manifest);
  CHECK(ReadManifest(folder) == manifest);
  CHECK(directory.num_files() == 2);
}

TEST_CASE("the digests of all pieces of a tensor add up, and its pieces must agree",
          "[checkpoint]") {
  StoredShard other = FiveBytes();
  other.tensors[0].digest = ~std::uint64_t{0};
  const ShardAddress second = {.module = "language", .pp = 3};
  const auto manifest = MakeManifest(kRun, {{kShard, FiveBytes()}, {second, other}});
  const SavedTensor& tensor = manifest.tensors.at("parameter/language.a");
  CHECK(tensor.digest == 6);
  CHECK(tensor.files == std::vector<std::size_t>{0, 1});
  other.tensors[0].shape = {4, 3};
  CHECK_THROWS_WITH(
      MakeManifest(kRun, {{kShard, FiveBytes()}, {second, other}}),
      "language.s3 dp0 rank 0: tensor parameter/language.a: expected a piece of [4, 2] "
      "of F32, got one of [4, 3] of F32");
}

TEST_CASE("a manifest is not written over files that are not as it says", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  const CheckpointManifest manifest{.run = {.step = 1}, .files = {{kFile, "", 5, kSum, kSum}}};
  CHECK_THROWS_WITH(WriteManifest(folder, manifest),
                    EndsWith(kFile + ": not there, expected 5 bytes"));
  std::filesystem::create_directory(directory.File(kFile));
  CHECK_THROWS_WITH(WriteManifest(folder, manifest),
                    EndsWith(kFile + ": not there, expected 5 bytes"));
  std::filesystem::remove(directory.File(kFile));
  WriteBytes(directory.File(kFile), "1234");
  CHECK_THROWS_WITH(WriteManifest(folder, manifest), EndsWith(": 4 bytes, expected 5 bytes"));
  CHECK_THROWS_WITH(
      WriteManifest(folder, {.run = {.step = -1}, .files = {{kFile, "", 4, kSum, kSum}}}),
      EndsWith("manifest.json: step is not an integer from 0 to 2^63 - 1"));
  CHECK_THROWS_WITH(WriteManifest(folder, {.run = {.step = 1}, .files = {}}),
                    EndsWith("manifest.json: files is not a list of files"));
  CHECK_FALSE(ReadManifest(folder));
}

struct HostileManifest {
  std::string text;
  std::string error;
};

/// An entry of files.
std::string FileText(const std::string& name) {
  return R"({"name":")" + name + R"(","process":"","bytes":1,"header_sha256":")" + kSum +
         R"(","sha256":")" + kSum + "\"}";
}

std::string ManifestWith(
    const std::string& files, const std::string& tensors = "{}", const std::string& step = "1",
    const std::string& data = R"({"place":1,"group":1,"rows":1,"digest":""})") {
  return R"({"format":"troupe-sharded-3","step":)" + step +
         R"(,"steps":2,"configuration":"","data":)" + data + R"(,"files":)" + files +
         R"(,"tensors":)" + tensors + R"(,"sha256":")" + kSum + "\"}";
}

std::string ManifestWithTensor(const std::string& shape, const std::string& files,
                               const std::string& type = "F32",
                               const std::string& digest = "0123456789abcdef") {
  return ManifestWith("[" + FileText("a") + "]", R"({"parameter/a":{"type":")" + type +
                                                     R"(","shape":)" + shape + R"(,"digest":")" +
                                                     digest + R"(","files":)" + files + "}}");
}

const std::string kFileKeys =
    "an item of files must have exactly the keys name, process, bytes, sha256, header_sha256";
const std::string kPlaces = "files of a tensor are not ascending places in files";

const std::vector<HostileManifest> kHostileManifests = {
    {"", "manifest does not begin with '{'"},
    {"[]", "manifest does not begin with '{'"},
    {"{", "manifest is not valid JSON at byte 2"},
    {std::string("{}\0x", 4), "manifest has a zero byte at byte 3"},
    {"{} {}", "manifest is not valid JSON at byte 4"},
    {"{}", "has no format"},
    {R"({"format":"other"})", "expected format \"troupe-sharded-3\", got \"other\""},
    {R"({"format":"troupe-sharded-2"})",
     "was written by another version of troupe, as \"troupe-sharded-2\"; this one reads "
     "\"troupe-sharded-3\""},
    {R"({"format":"troupe-sharded-3","format":"troupe-sharded-3"})",
     "manifest has the key \"format\" twice"},
    {R"({"format":"troupe-sharded-3","step":1})",
     "it must have exactly the keys format, step, steps, configuration, data, files, tensors, "
     "sha256"},
    {ManifestWith("[{}]", "{}", "1e999"), "manifest holds a number that is too large"},
    {ManifestWith("[{}]", "{}", "1.0"), "step is not an integer from 0 to 2^63 - 1"},
    {ManifestWith("[{}]", "{}", "9223372036854775808"),
     "step is not an integer from 0 to 2^63 - 1"},
    {ManifestWith("[]", "{}", "1", "1"),
     "data must have exactly the keys place, group, rows, digest"},
    {ManifestWith("[]", "{}", "1", R"({"place":-1,"group":1,"rows":1,"digest":""})"),
     "place is not an integer from 0 to 2^63 - 1"},
    {ManifestWith("[]", "{}", "1",
                  R"({"place":1,"group":1,"rows":1,"digest":"","window":3,"window_pack":2})"),
     "expected data.window <= data.window_pack <= data.place"},
    {ManifestWith("[]", "{}", "1",
                  R"({"place":9,"group":1,"rows":1,"digest":"","window":3,"window_pack":2})"),
     "expected data.window <= data.window_pack <= data.place"},
    {ManifestWith("[]", "{}", "1", R"({"place":1,"group":1,"rows":1,"digest":"","window":3})"),
     "data must have exactly the keys place, group, rows, digest, window, window_pack"},
    {ManifestWith("{}"), "files is not a list of files"},
    {ManifestWith("[]"), "files is not a list of files"},
    {ManifestWith("[1]"), kFileKeys},
    {ManifestWith(R"([{"name":"a","bytes":1}])"), kFileKeys},
    {ManifestWith(R"([{"name":"a","bytes":[[[1]]]}])"), "manifest is nested deeper than 4"},
    {ManifestWith("[" + FileText("a") + "]", "[]"), "tensors is not an object"},
    {ManifestWith("[" + FileText("a") + "," + FileText("a") + "]"), "lists \"a\" twice"},
    {ManifestWith("[" + FileText("a") + "]"), "was changed since it was written"},
    {ManifestWithTensor("[1]", "[0]"), "was changed since it was written"},
    {ManifestWithTensor("[1]", "[1]"), kPlaces},
    {ManifestWithTensor("[1]", "[0, 0]"), kPlaces},
    {ManifestWithTensor("[-1]", "[0]"), "a size is not an integer from 0 to 2^63 - 1"},
    {ManifestWithTensor("1", "[0]"), "shape is not a list"},
    {ManifestWithTensor("[1]", "[0]", "F33"), "unknown type \"F33\""},
    {ManifestWithTensor("[1]", "[0]", "F32", "0"),
     "digest is not 16 digits from 0 to f, but \"0\""},
    {ManifestWith("[" + FileText(R"()") + "]"), "expected the name of a file, got \"\""},
    {ManifestWith("[" + FileText(R"(..)") + "]"), "expected the name of a file, got \"..\""},
    {ManifestWith("[" + FileText(R"(../a)") + "]"), "expected the name of a file, got \"../a\""},
    {ManifestWith("[" + FileText(R"(/etc/a)") + "]"),
     "expected the name of a file, got \"/etc/a\""},
    {ManifestWith("[" + FileText(R"(a\nb/)") + "]"), "expected the name of a file, got \"a\\nb/\""},
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
                    path + ": expected at most 67108864 bytes, got more");
}

TEST_CASE("whatever byte of a manifest is changed or cut, it is refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  WriteBytes(directory.File(kFile), "12345");
  const CheckpointManifest written = MakeManifest(kRun, {{kShard, FiveBytes()}});
  WriteManifest(folder, written);
  const std::string path = directory.File("manifest.json");
  const std::string whole = ReadBytes(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const char byte : {'\0', '\xff', '"', '{', '9', '/', ' ', '\n'}) {
      std::string changed = whole;
      changed[i] = byte;
      if (changed == whole) continue;
      CAPTURE(changed);
      WriteBytes(path, changed);
      CHECK_THROWS_WITH(ReadManifest(folder), StartsWith(path + ": "));
    }
    WriteBytes(path, whole.substr(0, i));
    CHECK_THROWS_AS(ReadManifest(folder), std::runtime_error);
  }
  WriteBytes(path, "{ " + whole.substr(1));
  CHECK_THROWS_AS(ReadManifest(folder), std::runtime_error);
}

TEST_CASE("a manifest without one of its files is refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("");
  WriteBytes(directory.File("a"), "12345");
  WriteBytes(directory.File("b"), "12345");
  WriteManifest(
      folder, {.run = {.step = 1}, .files = {{"a", "", 5, kSum, kSum}, {"b", "", 5, kSum, kSum}}});
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
