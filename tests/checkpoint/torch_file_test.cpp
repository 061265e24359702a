#include "checkpoint/torch_file.hpp"

#include <cctype>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include <catch2/catch.hpp>

#include "checkpoint/folder_facts.hpp"
#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::EndsWith;

namespace troupe {
namespace {

/// What tools/oracle/record_pickles.py has written.
const std::string kRecorded = "tests/oracle/pickles/";

std::vector<double> LoadedAsDoubles(const Buffer& loaded) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < loaded.num_elements(); ++i) {
    switch (loaded.dtype()) {
      case DType::kInt64:
        values.push_back(static_cast<double>(loaded.as<std::int64_t>()[i]));
        break;
      case DType::kInt32:
        values.push_back(loaded.as<std::int32_t>()[i]);
        break;
      case DType::kUInt8:
        values.push_back(loaded.as<std::uint8_t>()[i]);
        break;
      case DType::kFloat64:
        values.push_back(loaded.as<double>()[i]);
        break;
      default:
        values.push_back(loaded.as<float>()[i]);
    }
  }
  return values;
}

/// The type, shape and values of a tensor in a file.
struct Tensor {
  StoredType type = StoredType::kFloat32;
  Shape shape;
  std::vector<double> values;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

Tensor ReadTensor(const TensorFile& file, const std::string& name) {
  const TensorEntry* const entry = FindEntry(file.entries, name);
  REQUIRE(entry != nullptr);
  const std::string bytes = ReadBytes(file.path);
  REQUIRE(entry->end <= bytes.size());
  Buffer loaded = Buffer::Allocate(entry->shape, LoadedTypeOf(entry->type));
  REQUIRE(entry->end - entry->begin ==
          static_cast<std::uint64_t>(loaded.num_elements()) * SizeOf(entry->type));
  Widen(entry->type, reinterpret_cast<const std::byte*>(bytes.data()) + entry->begin,
        static_cast<std::size_t>(loaded.num_elements()), loaded.data());
  return {entry->type, entry->shape, LoadedAsDoubles(loaded)};
}

TEST_CASE("the state_dict of a module has every type with its values", "[torch_file]") {
  const TensorFile file = ReadTorchFile(kRecorded + "every_type.bin");
  double first = 0.0;
  for (const StoredType type : {StoredType::kFloat64, StoredType::kFloat32, StoredType::kFloat16,
                                StoredType::kBFloat16, StoredType::kInt64, StoredType::kInt32,
                                StoredType::kInt16, StoredType::kInt8, StoredType::kUInt8}) {
    std::string name = ToString(type);
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
    INFO(name);
    CHECK(ReadTensor(file, name) ==
          Tensor{type, {2, 3}, {first, first + 1, first + 2, first + 3, first + 4, first + 5}});
    first += 10;
  }
  CHECK(ReadTensor(file, "flag") == Tensor{StoredType::kBool, {3}, {1, 0, 1}});
  CHECK(ReadTensor(file, "part.weight") == Tensor{StoredType::kFloat32, {1, 2}, {100, 101}});
  CHECK(ReadTensor(file, "part.bias") == Tensor{StoredType::kFloat32, {1}, {110}});
  CHECK(file.entries.size() == 12);
}

TEST_CASE("parameters, views and tensors that share a storage are read, in both protocols",
          "[torch_file]") {
  const TensorFile file = ReadTorchFile(kRecorded + GENERATE("tensors.bin", "protocol4.bin"));
  const auto is = [&](const std::string& name, const Shape& shape,
                      const std::vector<double>& values) {
    INFO(name);
    CHECK(ReadTensor(file, name) == Tensor{StoredType::kFloat32, shape, values});
  };
  is("embed", {2, 2}, {0, 1, 2, 3});
  is("head", {2, 2}, {0, 1, 2, 3});
  CHECK(FindEntry(file.entries, "head")->begin == FindEntry(file.entries, "embed")->begin);
  is("parameter", {3}, {10, 11, 12});
  is("view", {2, 2}, {4, 5, 6, 7});
  is("scalar", {}, {30});
  is("empty", {3, 0}, {});
  is("one_row", {1, 4}, {4, 5, 6, 7});
  is("expanded", {1, 3}, {60, 61, 62});
  CHECK(file.entries.size() == 8);
}

TEST_CASE("places of more than 4 GiB are read where ZIP64 has them", "[torch_file]") {
  const TensorFile file = ReadTorchFile(kRecorded + "zip64.bin");
  CHECK(ReadTensor(file, "w") == Tensor{StoredType::kFloat32, {2}, {0, 1}});

  std::string bytes = ReadBytes(kRecorded + "zip64.bin");
  bytes.replace(bytes.size() - 6, 4, "\xff\xff\xff\xff");  // the directory's, in the last record
  const TemporaryDirectory directory;
  WriteBytes(directory.File("a.bin"), bytes);
  CHECK(ReadTorchFile(directory.File("a.bin")).entries == file.entries);
}

TEST_CASE("files of PyTorch that are not tensors by name are refused by file", "[torch_file]") {
  const auto refused = [](const std::string& name, const std::string& text) {
    const std::string path = kRecorded + name;
    CHECK_THROWS_WITH(ReadTorchFile(path), path + ": " + text);
  };
  refused("evil.bin", "the pickle asks for posix.system; only tensors are read");
  CHECK_FALSE(std::filesystem::exists("owned"));
  refused("transposed.bin",
          "tensor \"w\" of shape [3, 2] has strides [1, 3]: save it with .contiguous()");
  refused("nested.bin", "\"state_dict\": expected a tensor, got a dict: save this dict alone");
  refused("number.bin", "\"epoch\": expected a tensor, got a number: save tensors alone");
  refused("dimensions.bin", "the shape of tensor \"w\": expected at most 64 numbers, got 65");
  refused("old.bin", "has the format before PyTorch 1.6: load it and save it again");
  refused("deflated.bin",
          "entry \"small/data.pkl\" is compressed: save it with torch.save, which compresses "
          "nothing");
}

/// `bytes` with one part replaced by one as long.
std::string Replaced(std::string bytes, std::string_view from, std::string_view to,
                     bool last = false) {
  REQUIRE(from.size() == to.size());
  const std::size_t at = last ? bytes.rfind(from) : bytes.find(from);
  REQUIRE(at != std::string::npos);
  return bytes.replace(at, from.size(), to);
}

/// `bytes` with the byte at `offset` of the first record that begins with `signature` changed.
std::string Changed(std::string bytes, const char* signature, std::size_t offset, char to) {
  bytes.at(bytes.find(signature) + offset) = to;
  return bytes;
}

class SmallFile {
 public:
  void Refuse(const std::string& bytes, const std::string& text) const {
    INFO(text);
    WriteBytes(path_, bytes);
    CHECK_THROWS_WITH(ReadTorchFile(path_), path_ + ": " + text);
  }
  void Refuse(std::string_view from, std::string_view to, const std::string& text) const {
    Refuse(Replaced(bytes_, from, to), text);
  }

  const std::string& path() const { return path_; }
  const std::string& bytes() const { return bytes_; }

 private:
  const TemporaryDirectory directory_;
  const std::string path_ = directory_.File("a.bin");
  /// {"w": [0, 1]}, whose pickle ends with: K offset K size 0x85 q 8 K stride 0x85 q 9
  const std::string bytes_ = ReadBytes(kRecorded + "small.bin");
};

TEST_CASE("pickles that contradict their storages or themselves are refused", "[torch_file]") {
  using namespace std::string_view_literals;
  const SmallFile file;
  file.Refuse("cpuq\x06K\x02", "cpuq\x06K\x03",
              "the storage of tensor \"w\": expected 12 bytes in entry \"small/data/0\", found 8");
  file.Refuse("X\x01\0\0\0000q"sv, "X\x01\0\0\0001q"sv,
              "the storage of tensor \"w\": expected entry \"small/data/1\", found none");
  file.Refuse("K\0K\x02\x85"sv, "K\x01K\x02\x85",
              "tensor \"w\" has 2 elements from element 1 of its storage on, which has 2");
  file.Refuse("K\0K\x02\x85"sv, "K\x03K\x02\x85",
              "tensor \"w\" has 2 elements from element 3 of its storage on, which has 2");
  file.Refuse("K\0K\x02\x85"sv, "K\0K\x03\x85"sv,
              "tensor \"w\" has 3 elements from element 0 of its storage on, which has 2");
  file.Refuse("K\x01\x85q\x09", "K\x02\x85q\x09",
              "tensor \"w\" of shape [2] has strides [2]: save it with .contiguous()");
  file.Refuse("K\x01\x85q\x09", ")q\x09q\x09",
              "tensor \"w\" of shape [2] has strides []: save it with .contiguous()");
  file.Refuse("K\x02\x85q\x08", "\x8a\x01\xff\x85\x94",
              "the shape of tensor \"w\": expected at least 0, got -1");
  file.Refuse("K\0K\x02\x85"sv, "K\x02\x85q ",
              "tensor \"w\": expected 6 arguments in the pickle, got 5");
  file.Refuse("K\0K\x02\x85"sv, "NNK\x02\x85",
              "tensor \"w\" is a view that conjugates or negates: save it resolved");
}

TEST_CASE("archives that PyTorch does not write are refused", "[torch_file]") {
  using namespace std::string_view_literals;
  const SmallFile file;
  file.Refuse("little", "bigbig", "expected the byte order \"little\", got \"bigbig\"");
  file.Refuse(Changed(file.bytes(), "PK\1\2", 8, 9), "entry \"small/data.pkl\" is encrypted");
  file.Refuse(Changed(file.bytes(), "PK\1\2", 20, 9),
              "the zip file is damaged: entry \"small/data.pkl\" has two sizes");
  file.Refuse(Changed(file.bytes(), "PK\1\2", 42, 1),
              "the zip file is damaged: entry \"small/data.pkl\" is not where it should be");
  file.Refuse(Changed(file.bytes(), "PK\1\2", 45, 1),
              "the zip file is damaged: entry \"small/data.pkl\" is beyond its end");
  file.Refuse(Changed(file.bytes(), "PK\6\6", 43, 5),
              "the zip file has a directory of 83886529 bytes, expected at most 67108864");
  file.Refuse(Changed(ReadBytes(kRecorded + "zip64.bin"), "PK\1\2", 46 + 14, 2),
              "the zip file is damaged: entry \"small/data.pkl\" is beyond its end");
  file.Refuse(Replaced(file.bytes(), "small/data/0", "small/data/1", /*last=*/true),
              "the storage of tensor \"w\": expected entry \"small/data/0\", found none");
  file.Refuse(Replaced(file.bytes(), "small/data.pkl", "small/data.pkx", /*last=*/true),
              "expected one entry NAME/data.pkl, as torch.save writes it, found 0");
  file.Refuse("", "expected a zip file of torch.save, found another file or a part of one");
  file.Refuse("version https://git-lfs.github.com/spec/v1\n",
              "expected a zip file of torch.save, found another file or a part of one");
  file.Refuse(Replaced(file.bytes(), "small/.format_version", "small/abcdef/data.pkl", true),
              "expected one entry NAME/data.pkl, as torch.save writes it, found 2");
  const std::string tensors = ReadBytes(kRecorded + "tensors.bin");
  file.Refuse(Replaced(tensors, "embed", "empty"), "tensor \"empty\" is there twice");
  file.Refuse(Replaced(tensors, "tensors/data/1", "tensors/data/0", /*last=*/true),
              "entry \"tensors/data/0\" is there twice");
}

TEST_CASE("a file that is cut off anywhere is refused", "[torch_file]") {
  const SmallFile file;
  const std::string bytes =
      GENERATE(ReadBytes(kRecorded + "small.bin"), ReadBytes(kRecorded + "zip64.bin"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    WriteBytes(file.path(), bytes.substr(0, size));
    CAPTURE(size);
    REQUIRE_THROWS_AS(ReadTorchFile(file.path()), std::runtime_error);
  }
}

TEST_CASE("whatever one byte is changed to, tensors stay within the file", "[torch_file]") {
  const SmallFile file;
  const std::string bytes =
      GENERATE(ReadBytes(kRecorded + "small.bin"), ReadBytes(kRecorded + "zip64.bin"));
  int num_accepted = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {1, 0x80}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      WriteBytes(file.path(), changed);
      try {
        for (const TensorEntry& entry : ReadTorchFile(file.path()).entries) {
          REQUIRE(entry.begin <= entry.end);
          REQUIRE(entry.end <= changed.size());
          ++num_accepted;
        }
      } catch (const std::runtime_error& error) {
        REQUIRE(std::string(error.what()).starts_with(file.path() + ": "));
      }
    }
  }
  CHECK(num_accepted > 500);  // padding, checksums and the values themselves
}

TEST_CASE("a folder of pickles has the parts of the same folder as safetensors", "[torch_file]") {
  const TemporaryDirectory directory;
  namespace fs = std::filesystem;
  fs::copy(kRecorded + "llama", directory.File("folder"));
  fs::copy("tests/oracle/llama/config.json", directory.File("folder"));
  const FolderFacts got = ReadFolderFacts(directory.File("folder"));
  const FolderFacts expected = ReadFolderFacts("tests/oracle/llama");
  CHECK(got.num_files == 2);
  CHECK(got.num_bytes == expected.num_bytes);
  REQUIRE(got.parts.size() == 1);
  const FolderPart& part = got.parts.front();
  CHECK(part.failure.empty());
  CHECK(part.missing.empty());
  CHECK(part.num_tensors == expected.parts.front().num_tensors);
  CHECK(part.types == expected.parts.front().types);
}

}  // namespace
}  // namespace troupe
