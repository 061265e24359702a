#include "checkpoint/safetensors.hpp"

#include <csignal>
#include <cstring>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace troupe {
namespace {

/// Every byte follows from its place and `seed`.
Buffer Filled(const Shape& shape, DType dtype, unsigned seed) {
  Buffer buffer = Buffer::Allocate(shape, dtype);
  for (std::size_t i = 0; i < buffer.num_bytes(); ++i) {
    buffer.data()[i] = static_cast<std::byte>(seed * 31 + i * 7 + 1);
  }
  return buffer;
}

void CheckSame(const Buffer& a, const Buffer& b) {
  CHECK(a.dtype() == b.dtype());
  CHECK(a.shape() == b.shape());
  REQUIRE(a.num_bytes() == b.num_bytes());
  CHECK(std::memcmp(a.data(), b.data(), a.num_bytes()) == 0);
}

std::vector<NamedTensor> Mixed() {
  return {{"text \"quoted\" \n \xc3\xa9", Filled({3}, DType::kUInt8, 1)},
          {"scalar", Filled({}, DType::kFloat32, 2)},
          {"moments", Filled({2, 3}, DType::kFloat64, 3)},
          {"empty", Filled({4, 0, 2}, DType::kFloat32, 4)},
          {"weight", Filled({5, 1, 2}, DType::kFloat32, 5)},
          {"ids", Filled({2}, DType::kInt64, 6)},
          {"", Filled({3}, DType::kInt32, 7)}};
}

std::string FileOf(const std::string& header, std::size_t num_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + std::string(num_bytes, 'd');
}

TEST_CASE("tensors of every type and shape read back bit by bit", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::vector<NamedTensor> tensors = Mixed();
  WriteSafetensors(directory.File("a"), tensors, {{"step", "12"}});
  const SafetensorsReader reader(directory.File("a"));
  CHECK(reader.entries().size() == tensors.size());
  for (const NamedTensor& tensor : tensors) CheckSame(reader.Read(tensor.name), tensor.value);
  CHECK(reader.metadata() == Metadata{{"format", "pt"}, {"step", "12"}});
  CHECK(directory.num_files() == 1);
}

TEST_CASE("tensors lie widest first, then by name, and are aligned", "[checkpoint]") {
  const TemporaryDirectory directory;
  WriteSafetensors(directory.File("a"), Mixed());
  const SafetensorsReader reader(directory.File("a"));
  std::vector<std::string> names;
  for (const TensorEntry& entry : reader.entries()) {
    names.push_back(entry.name.substr(0, 7));
    CHECK(entry.begin % SizeOf(entry.type) == 0);
  }
  CHECK(names ==
        std::vector<std::string>{"ids", "moments", "", "empty", "scalar", "weight", "text \"q"});
}

TEST_CASE("a file is laid out as the format says and does not depend on the given order",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  Buffer weight = Buffer::Allocate({2}, DType::kFloat32);
  weight.as<float>()[0] = 1.0F;
  weight.as<float>()[1] = -2.0F;
  const Buffer byte = Filled({1}, DType::kUInt8, 9);
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"b":{"data_offsets":[8,9],"dtype":"U8","shape":[1]},)"
      R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  std::string expected = FileOf(json + std::string(8 - json.size() % 8, ' '), 0);
  expected += std::string("\0\0\x80\x3f\0\0\0\xc0", 8) + static_cast<char>(byte.data()[0]);
  WriteSafetensors(directory.File("a"), {{"b", byte}, {"w", weight}});
  WriteSafetensors(directory.File("b"), {{"w", weight}, {"b", byte}});
  CHECK(ReadBytes(directory.File("a")) == expected);
  CHECK(ReadBytes(directory.File("b")) == expected);
}

TEST_CASE("the header is a multiple of 8 bytes for every length of name", "[checkpoint]") {
  const TemporaryDirectory directory;
  for (std::size_t length = 0; length < 9; ++length) {
    const NamedTensor tensor{std::string(length, 'n'), Filled({1}, DType::kFloat64, 8)};
    WriteSafetensors(directory.File("a"), {tensor});
    CHECK(ReadBytes(directory.File("a")).size() % 8 == 0);
    CheckSame(SafetensorsReader(directory.File("a")).Read(tensor.name), tensor.value);
  }
}

TEST_CASE("a file without tensors is a file", "[checkpoint]") {
  const TemporaryDirectory directory;
  WriteSafetensors(directory.File("a"), {}, {{"format", "troupe"}});
  const SafetensorsReader reader(directory.File("a"));
  CHECK(reader.entries().empty());
  CHECK(reader.metadata() == Metadata{{"format", "troupe"}});
  WriteBytes(directory.File("b"), FileOf("{}", 0));
  CHECK(SafetensorsReader(directory.File("b")).entries().empty());
}

TEST_CASE("foreign files may be unaligned, unsorted and of narrow types", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string header = R"({ "h": {"dtype":"F16","shape":[2],"data_offsets":[3,7]},)"
                             R"( "b": {"shape":[3],"dtype":"BOOL","data_offsets":[0,3]},)"
                             R"( "e": {"shape":[0],"dtype":"I64","data_offsets":[3,3]} })";
  std::string bytes = FileOf(header, 0);
  bytes += std::string("\0\1\1", 3) + std::string("\0\x3c\0\xc1", 4);
  WriteBytes(directory.File("a"), bytes);
  const SafetensorsReader reader(directory.File("a"));
  const Buffer half = reader.Read("h");
  CHECK(half.dtype() == DType::kFloat32);
  CHECK(half.as<float>()[0] == 1.0F);
  CHECK(half.as<float>()[1] == -2.5F);
  const Buffer bools = reader.Read("b");
  CHECK(bools.dtype() == DType::kUInt8);
  CHECK(std::memcmp(bools.data(), "\0\1\1", 3) == 0);
  CHECK(reader.Read("e").shape() == Shape{0});
  CHECK(reader.metadata().empty());
}

TEST_CASE("tensors that cannot be written are named, and no file appears", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  const Buffer value = Filled({1}, DType::kFloat32, 1);
  CHECK_THROWS_WITH(WriteSafetensors(path, {{"x", value}, {"x", value}}),
                    EndsWith("/a: tensor name \"x\" is used twice"));
  CHECK_THROWS_WITH(WriteSafetensors(path, {{"__metadata__", value}}),
                    EndsWith("tensor name __metadata__ is reserved"));
  CHECK_THROWS_WITH(WriteSafetensors(path, {{"x", Buffer()}}), EndsWith("\"x\" has no value"));
  CHECK_THROWS_WITH(WriteSafetensors(path, {{"\xff", value}}), EndsWith("is not valid UTF-8"));
  CHECK(directory.num_files() == 0);
}

/// Files of this process cannot grow beyond `bytes` while it lives: as on a disk that fills up.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_ = {};
};

TEST_CASE("a disk that fills up while saving keeps the previous checkpoint", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a");
  const NamedTensor old_tensor{"w", Filled({4}, DType::kFloat32, 1)};
  WriteSafetensors(path, {old_tensor});
  {
    const FileSizeLimit limit(10'000);
    CHECK_THROWS_WITH(
        WriteSafetensors(path, {{"w", Filled({5000}, DType::kFloat32, 2)}}),
        EndsWith("/a.tmp: cannot write: File too large; is there a limit (ulimit -f)?"));
  }
  CheckSame(SafetensorsReader(path).Read("w"), old_tensor.value);
  CHECK(directory.num_files() == 1);
}

TEST_CASE("files that cannot be opened or read are named with the reason", "[checkpoint]") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(SafetensorsReader("/nowhere/a"),
                    "/nowhere/a: cannot open: No such file or directory");
  CHECK_THROWS_WITH(SafetensorsReader(directory.File("")), EndsWith("not a regular file"));
  REQUIRE(mkfifo(directory.File("pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(SafetensorsReader(directory.File("pipe")), EndsWith("not a regular file"));
  WriteSafetensors(directory.File("a"), {{"w", Filled({4}, DType::kFloat32, 1)}});
  const SafetensorsReader reader(directory.File("a"));
  CHECK(reader.Find("v") == nullptr);
  CHECK_THROWS_WITH(reader.Read("v"), EndsWith("/a: no tensor \"v\""));
  const auto size = std::filesystem::file_size(directory.File("a"));
  std::filesystem::resize_file(directory.File("a"), size - 1);
  CHECK_THROWS_WITH(reader.Read("w"), Contains("file has shrunk to"));
}

TEST_CASE("a file cut anywhere is refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  WriteSafetensors(directory.File("a"), Mixed());
  const std::string bytes = ReadBytes(directory.File("a"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    WriteBytes(directory.File("b"), bytes.substr(0, size));
    REQUIRE_THROWS_AS(SafetensorsReader(directory.File("b")), std::runtime_error);
  }
}

}  // namespace
}  // namespace troupe
