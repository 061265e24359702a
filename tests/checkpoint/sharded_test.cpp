#include "checkpoint/sharded.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "checkpoint/safetensors.hpp"
#include "tests/checkpoint/fake_program.hpp"
#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace troupe {
namespace {

const std::vector<ShardAddress> kShards = FakeShards(2, 2);
const std::string kOwn = "m.s0-dp0-cp0-tp0.safetensors";

/// A complete checkpoint of dp 2 x tp 2 in `folder`.
void WriteAll(const std::string& folder) {
  std::vector<StoredShard> stored;
  for (const ShardAddress& shard : kShards) {
    stored.push_back({shard, WriteShard(FakeProgram(shard, 2, true), shard, folder, 120)});
  }
  WriteManifest(folder, MakeManifest(folder, 120, "abc", stored));
}

/// A manifest that agrees with the files as they are now.
void ManifestOfNow(const std::string& folder) {
  std::vector<StoredShard> stored;
  for (const ShardAddress& shard : kShards) {
    stored.push_back({shard, Sha256Of(ReadBytes(folder + "/" + ShardFileName(shard)))});
  }
  WriteManifest(folder, MakeManifest(folder, 120, "abc", stored));
}

/// What reading into a fresh program of `shard` says. Nothing but a wrong SHA-256, which is known
/// last, may have touched the program.
std::string ErrorOf(const std::string& folder, const ShardAddress& shard = kShards[0],
                    int tp_size = 2) {
  FakeProgram program(shard, tp_size);
  try {
    ReadShard(program, shard, folder);
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    const bool untouched =
        std::ranges::count(program.Values(), 0.0) == std::ssize(program.Values());
    CHECK((untouched || text.find(": its SHA-256 is ") != std::string::npos));
    return text;
  }
  return "no error";
}

/// Replaces the shard's file by what `change` makes of its tensors and metadata, and the manifest.
template <class Change>
void ChangeFile(const std::string& folder, const std::string& name, Change change) {
  const std::string path = folder + "/" + name;
  std::vector<NamedTensor> tensors;
  Metadata metadata;
  {
    const SafetensorsReader reader(path);
    metadata = reader.metadata();
    for (const TensorEntry& entry : reader.entries()) {
      tensors.push_back({entry.name, reader.Read(entry.name)});
    }
  }
  change(tensors, metadata);
  WriteSafetensors(path, tensors, metadata);
  ManifestOfNow(folder);
}

NamedTensor& TensorOf(std::vector<NamedTensor>& tensors, const std::string& name) {
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::logic_error("no tensor " + name);
}

TEST_CASE("every shard of dp 2 x tp 2 reads back what it had, replicas and copies too",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("run/checkpoints/step-00000120");
  WriteAll(folder);
  for (const ShardAddress& shard : kShards) {
    FakeProgram program(shard, 2);
    ReadShard(program, shard, folder);
    INFO(ToString(shard));
    CHECK(program.Values() == FakeProgram(shard, 2, true).Values());
  }
}

TEST_CASE("a shard's file has what it owns and says where that lies", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const SafetensorsReader own(folder + "/" + kOwn);
  CHECK(own.entries().size() == 10);
  const SafetensorsReader other(folder + "/m.s0-dp0-cp0-tp1.safetensors");
  CHECK(other.entries().size() == 6);  // matrix and tail, the norm is tp rank 0's
  CHECK(other.metadata().at("first_moment/m.matrix") ==
        R"({"global_shape":[64,32],"offsets":[32,0]})");
  CHECK(other.Read("parameter/m.matrix").as<float>()[0] == 1 + 32 * 32);
  CHECK(other.Find("second_moment/m.matrix")->shape == Shape{32, 32});
  CHECK(other.metadata().at("shard") == "m.s0-dp0-cp0-tp1");
  CHECK(other.metadata().at("step") == "120");
}

TEST_CASE("a shard that owns nothing writes a file without tensors", "[checkpoint]") {
  const TemporaryDirectory directory;
  WriteShard(FakeProgram(kShards[3], 2, true), kShards[3], directory.File("a"), 120);
  CHECK(SafetensorsReader(directory.File("a/m.s0-dp1-cp0-tp1.safetensors")).entries().empty());
}

TEST_CASE("shards without a manifest are not read", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  for (const ShardAddress& shard : kShards) {
    WriteShard(FakeProgram(shard, 2, true), shard, folder, 120);
  }
  CHECK(ErrorOf(folder) == folder + ": no manifest.json: not a complete checkpoint");
}

TEST_CASE("a file that is gone or has another size is named", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const auto bytes = std::filesystem::file_size(folder + "/" + kOwn);
  const std::string expected = ", expected " + std::to_string(bytes) + " bytes";
  SECTION("gone") {
    std::filesystem::remove(folder + "/" + kOwn);
    CHECK(ErrorOf(folder) == folder + "/" + kOwn + ": not there" + expected);
    CHECK(ErrorOf(folder, kShards[2]) == folder + "/" + kOwn + ": not there" + expected);
  }
  SECTION("longer") {
    std::filesystem::resize_file(folder + "/" + kOwn, bytes + 1);
    CHECK(ErrorOf(folder) ==
          folder + "/" + kOwn + ": " + std::to_string(bytes + 1) + " bytes" + expected);
  }
}

TEST_CASE("a shard file cut at any 512 bytes is refused, whatever the manifest says",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const std::string path = folder + "/" + kOwn;
  const std::string whole = ReadBytes(path);
  REQUIRE(whole.size() > 12 * 1024);
  for (std::size_t size = 0; size < whole.size(); size += 512) {
    CAPTURE(size);
    WriteBytes(path, whole.substr(0, size));
    CHECK_THAT(ErrorOf(folder), StartsWith(path + ": " + std::to_string(size) + " bytes, expect"));
    // A manifest that agrees leaves it to the reader, for the shard itself and for its replica.
    ManifestOfNow(folder);
    CHECK_THAT(ErrorOf(folder), StartsWith(path + ": "));
    CHECK_THAT(ErrorOf(folder, kShards[2]), StartsWith(path + ": "));
    WriteBytes(path, whole);
    ManifestOfNow(folder);
  }
  CHECK(ErrorOf(folder) == "no error");
}

TEST_CASE("whatever byte of a shard's file is changed, its shard refuses it", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const std::string path = folder + "/" + kOwn;
  const std::string whole = ReadBytes(path);
  const std::string damaged = path + ": damaged since it was written: its SHA-256 is ";
  const std::string remove = "; remove " + folder + " to resume from the checkpoint before it";
  const std::size_t data = whole.size() - SafetensorsReader(path).entries().back().end;
  const auto error_with = [&](std::size_t i, char byte) {
    std::string changed = whole;
    changed[i] = byte;
    WriteBytes(path, changed);
    return ErrorOf(folder);
  };
  for (std::size_t i = 0; i < data; ++i) {
    for (const char byte : {'\0', '\xff', '3', ' '}) {
      if (whole[i] == byte) continue;
      CAPTURE(i, byte);
      const std::string error = error_with(i, byte);
      CHECK_THAT(error, StartsWith(path + ": "));
      CHECK_THAT(error, !Contains("another layout"));
    }
  }
  for (std::size_t i = data; i < whole.size(); i += i + 64 < whole.size() ? 61 : 1) {
    CAPTURE(i);
    const std::string error = error_with(i, static_cast<char>(whole[i] ^ 1));
    CHECK_THAT(error, StartsWith(damaged) && EndsWith(remove));
  }
  WriteBytes(path, whole);
  CHECK(ErrorOf(folder) == "no error");
}

TEST_CASE("a file with a part that was never written, or of another step or shard, is refused",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const std::string path = folder + "/" + kOwn;
  const std::string remove = "; remove " + folder + " to resume from the checkpoint before it";
  std::string bytes = ReadBytes(path);
  SECTION("a tail of zeros") {
    bytes.replace(bytes.size() - 4000, 4000, 4000, '\0');
    WriteBytes(path, bytes);
    CHECK_THAT(
        ErrorOf(folder),
        StartsWith(path + ": damaged since it was written: its SHA-256 is ") && EndsWith(remove));
  }
  SECTION("another step") {
    WriteShard(FakeProgram(kShards[0], 2, true), kShards[0], folder, 118);
    CHECK(ErrorOf(folder) == path + ": its header has step \"118\", expected \"120\"" + remove);
    CHECK(ErrorOf(folder, kShards[2]) == ErrorOf(folder));
  }
  SECTION("another shard, of the same size") {
    const std::string other = folder + "/" + ShardFileName(kShards[3]);
    std::filesystem::copy_file(folder + "/" + ShardFileName(kShards[2]), other,
                               std::filesystem::copy_options::overwrite_existing);
    CHECK(ErrorOf(folder, kShards[3]) == other +
                                             ": its header has shard \"m.s0-dp1-cp0-tp0\", "
                                             "expected \"m.s0-dp1-cp0-tp1\"" +
                                             remove);
  }
}

TEST_CASE("another layout is refused by tensor, file, what was expected and what is there",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const std::string other_layout = ": the checkpoint was written in another layout";
  SECTION("fewer tensor-parallel ranks") {
    CHECK(ErrorOf(folder, kShards[0], 1) ==
          "tensor parameter/m.matrix: expected [64, 32] of F32 at "
          R"({"global_shape":[64,32],"offsets":[0,0]}, but )" +
              folder + "/" + kOwn + R"( has [32, 32] of F32 at )" +
              R"("{\"global_shape\":[64,32],\"offsets\":[0,0]}")" + other_layout);
  }
  SECTION("more tensor-parallel ranks") {
    const ShardAddress third = FakeShards(1, 4)[2];
    CHECK(ErrorOf(folder, third, 4) == folder +
                                           ": expected a file m.s0-dp0-cp0-tp2.safetensors, the "
                                           "manifest lists none" +
                                           other_layout);
  }
  SECTION("a replica of another cut") {
    FakeProgram program(kShards[2], 2);
    for (auto& [kind, pieces] : program.pieces) pieces[0].offsets = {16, 0};
    CHECK_THROWS_WITH(ReadShard(program, kShards[2], folder),
                      StartsWith("tensor first_moment/m.matrix: expected [32, 32] of F32 at "
                                 R"({"global_shape":[64,32],"offsets":[16,0]}, but )" +
                                 folder + "/" + kOwn) &&
                          EndsWith(other_layout));
  }
  SECTION("a replica with a tensor without an owner") {
    FakeProgram program(kShards[2], 2);
    program.pieces[TensorKind::kParameter][1].name = "m.scale";
    CHECK_THROWS_WITH(ReadShard(program, kShards[2], folder),
                      "tensor parameter/m.scale: expected [5] of float64 at [0] of [5] in a file "
                      "of " +
                          folder + ", none has it" + other_layout);
  }
  SECTION("an owner with a tensor that was not stored") {
    FakeProgram program(kShards[0], 2);
    program.pieces[TensorKind::kParameter][1].name = "m.scale";
    CHECK_THROWS_WITH(ReadShard(program, kShards[0], folder),
                      "tensor parameter/m.scale: expected [5] of float64 at [0] of [5] in " +
                          folder + "/" + kOwn + ", which has none" + other_layout);
  }
  SECTION("a stored tensor that the shard does not have") {
    FakeProgram program(kShards[0], 2);
    program.pieces[TensorKind::kFirstMoment].pop_back();
    CHECK_THROWS_WITH(ReadShard(program, kShards[0], folder),
                      folder + "/" + kOwn +
                          ": has tensor \"first_moment/m.tail\", which m.s0 dp0 "
                          "rank 0 does not own" +
                          other_layout);
  }
}

TEST_CASE("a file whose tensors are not what the shard holds is refused", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  SECTION("another type of the same bytes") {
    ChangeFile(folder, kOwn, [](auto& tensors, auto&) {
      TensorOf(tensors, "parameter/m.matrix").value = Buffer::Zeros({32, 32}, DType::kInt32);
    });
    CHECK_THAT(ErrorOf(folder), Contains(" has [32, 32] of I32 at "));
  }
  SECTION("a shape of a hundred thousand dimensions") {
    ChangeFile(folder, kOwn, [](auto& tensors, auto&) {
      TensorOf(tensors, "parameter/m.matrix").value =
          Buffer::Zeros(Shape(100'000, 1), DType::kFloat32);
    });
    CHECK_THAT(ErrorOf(folder), Contains(" has 100000 dimensions of F32 at "));
    CHECK(ErrorOf(folder).size() < 1000);
  }
  SECTION("no place") {
    ChangeFile(folder, kOwn, [](auto&, auto& metadata) { metadata.erase("second_moment/m.norm"); });
    CHECK_THAT(ErrorOf(folder), StartsWith("tensor second_moment/m.norm: ") &&
                                    Contains(" has [5] of F64 at no place: "));
    CHECK_THAT(ErrorOf(folder, kShards[1]), StartsWith("tensor second_moment/m.norm: "));
  }
  SECTION("a place that is anything of any length") {
    ChangeFile(folder, kOwn, [](auto&, auto& metadata) {
      metadata["parameter/m.norm"] = std::string(100'000, '\n');
    });
    CHECK_THAT(ErrorOf(folder), Contains("tensor parameter/m.norm: "));
    CHECK(ErrorOf(folder).size() < 1000);
  }
}

TEST_CASE("a disk that cannot take a shard leaves no file of its name", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  std::filesystem::create_directory(folder);
  // As a full disk does, a limit on the size of files refuses the bytes, not the name.
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string error;
  try {
    WriteShard(FakeProgram(kShards[0], 2, true), kShards[0], folder, 120);
  } catch (const std::runtime_error& e) {
    error = e.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, ignored);
  CHECK_THAT(error, EndsWith("cannot write: File too large; is there a limit (ulimit -f)?"));
  CHECK_FALSE(std::filesystem::exists(folder + "/" + kOwn));
}

TEST_CASE("pieces that a folder has are neither written nor expected") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("step");
  const ShardAddress shard{.module = "m"};
  const auto in_folder = [&](FakeProgram program) {
    for (TensorPiece& piece : program.pieces[TensorKind::kParameter]) {
      piece.in_folder = piece.name == "m.frozen";
    }
    return program;
  };
  const std::string sha256 = WriteShard(in_folder(FakeProgram(shard, 1, true)), shard, folder, 7);
  WriteManifest(folder, MakeManifest(folder, 7, "", {{shard, sha256}}));
  const SafetensorsReader file(folder + "/" + ShardFileName(shard));
  CHECK(file.Find("parameter/m.frozen") == nullptr);
  CHECK(file.Find("parameter/m.norm") != nullptr);
  FakeProgram read = in_folder(FakeProgram(shard, 1));
  ReadShard(read, shard, folder);
  FakeProgram whole(shard, 1);
  CHECK_THROWS_WITH(ReadShard(whole, shard, folder), Catch::Contains("m.frozen"));
}

}  // namespace
}  // namespace troupe
