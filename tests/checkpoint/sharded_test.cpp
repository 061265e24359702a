#include "checkpoint/sharded.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "checkpoint/run_checkpoints.hpp"
#include "checkpoint/safetensors.hpp"
#include "files/sha256.hpp"
#include "tests/checkpoint/fake_program.hpp"
#include "tests/checkpoint/temporary_directory.hpp"

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace troupe {
namespace {

const std::vector<ShardAddress> kShards = FakeShards(2, 2);
const std::string kOwn = "m.s0-dp0-cp0-tp0.safetensors";

/// The digests and pieces of `shard` with the file that is there now.
WrittenShard WrittenNow(const std::string& folder, const ShardAddress& shard,
                        std::vector<StoredTensor> tensors) {
  const std::string path = folder + "/" + ShardFileName(shard);
  StoredShard stored{.file = ShardFileName(shard),
                     .bytes = std::filesystem::file_size(path),
                     .sha256 = Sha256OfFile(path),
                     .header_sha256 = std::string(64, '0'),
                     .tensors = std::move(tensors)};
  try {
    stored.header_sha256 = SafetensorsReader(path).header_sha256();
  } catch (const std::runtime_error&) {  // a test has cut it
  }
  return {shard, stored};
}

/// A complete checkpoint of dp 2 x tp 2 in `folder`.
std::vector<WrittenShard> WriteAll(const std::string& folder) {
  std::vector<WrittenShard> written;
  for (const ShardAddress& shard : kShards) {
    written.push_back({shard, WriteShard(FakeProgram(shard, 2, true), shard, {folder, 120})});
  }
  WriteManifest(folder, MakeManifest({.step = 120}, written));
  return written;
}

/// A manifest that agrees with the files as they are now.
void ManifestOfNow(const std::string& folder, const std::vector<WrittenShard>& written) {
  std::vector<WrittenShard> now;
  for (const WrittenShard& each : written) {
    if (each.stored.file.empty()) continue;
    now.push_back(WrittenNow(folder, each.shard, each.stored.tensors));
  }
  WriteManifest(folder, MakeManifest({.step = 120}, now));
}

/// Reads the checkpoint into all shards of a layout, and returns their values. Throws as a job does.
std::vector<std::vector<double>> ReadAllInto(const std::string& folder, int dp, int tp) {
  std::vector<std::vector<double>> values;
  std::vector<StoredTensor> read;
  for (const ShardAddress& shard : FakeShards(dp, tp)) {
    FakeProgram program(shard, tp);
    const LoadedShard loaded = ReadShard(program, shard, {folder, {}});
    read.insert(read.end(), loaded.tensors.begin(), loaded.tensors.end());
    values.push_back(program.Values());
  }
  CheckDigests({folder}, read);
  return values;
}

/// What a job of a layout says that resumes. One line.
std::string JobErrorOf(const std::string& folder, int dp = 2, int tp = 2) {
  try {
    ReadAllInto(folder, dp, tp);
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  return "no error";
}

/// What reading into a fresh program of `shard` says. It must not have touched the program.
std::string ErrorOf(const std::string& folder, const ShardAddress& shard = kShards[0],
                    int tp_size = 2) {
  FakeProgram program(shard, tp_size);
  try {
    ReadShard(program, shard, {folder, {}});
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    CHECK(std::ranges::count(program.Values(), 0.0) == std::ssize(program.Values()));
    return text;
  }
  return "no error";
}

/// Replaces the shard's file by what `change` makes of its tensors and metadata, and the manifest.
template <class Change>
void ChangeFile(const std::string& folder, const std::vector<WrittenShard>& written,
                const std::string& name, Change change) {
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
  ManifestOfNow(folder, written);
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
    ReadShard(program, shard, {folder, {}});
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

TEST_CASE("a shard that owns nothing writes no file", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  const StoredShard stored =
      WriteShard(FakeProgram(kShards[3], 2, true), kShards[3], {folder, 120});
  CHECK(stored == StoredShard{});
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE("shards without a manifest are not read", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  for (const ShardAddress& shard : kShards) {
    WriteShard(FakeProgram(shard, 2, true), shard, {folder, 120});
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
    const std::string missing = ": " + folder + "/" + kOwn + ": not there" + expected;
    CHECK(ErrorOf(folder) == ToString(kShards[0]) + missing);
    CHECK(ErrorOf(folder, kShards[2]) == ToString(kShards[2]) + missing);
  }
  SECTION("longer") {
    std::filesystem::resize_file(folder + "/" + kOwn, bytes + 1);
    CHECK(ErrorOf(folder) == ToString(kShards[0]) + ": " + folder + "/" + kOwn + ": " +
                                 std::to_string(bytes + 1) + " bytes" + expected);
  }
}

TEST_CASE("a shard file cut at any 512 bytes is refused, whatever the manifest says",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  const auto written = WriteAll(folder);
  const std::string path = folder + "/" + kOwn;
  const std::string whole = ReadBytes(path);
  REQUIRE(whole.size() > 12 * 1024);
  for (std::size_t size = 0; size < whole.size(); size += 512) {
    CAPTURE(size);
    WriteBytes(path, whole.substr(0, size));
    CHECK_THAT(ErrorOf(folder), Contains(path + ": " + std::to_string(size) + " bytes, expect"));
    // A manifest that agrees leaves it to the reader, for the shard itself and for its replica.
    ManifestOfNow(folder, written);
    CHECK_THAT(ErrorOf(folder), Contains(path + ": "));
    CHECK_THAT(ErrorOf(folder, kShards[2]), Contains(path + ": "));
    WriteBytes(path, whole);
    ManifestOfNow(folder, written);
  }
  CHECK(ErrorOf(folder) == "no error");
}

TEST_CASE("whatever byte of a file is changed, every layout refuses it", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const std::string path = folder + "/" + kOwn;
  const std::string whole = ReadBytes(path);
  const std::string remove = "; remove " + folder + " to resume from the checkpoint before it";
  const std::size_t data = whole.size() - SafetensorsReader(path).entries().back().end;
  const auto error_with = [&](std::size_t i, char byte, int tp) {
    std::string changed = whole;
    changed[i] = byte;
    WriteBytes(path, changed);
    return JobErrorOf(folder, 1, tp);
  };
  for (std::size_t i = 0; i < data; ++i) {
    for (const char byte : {'\0', '\xff', '3', ' '}) {
      if (whole[i] == byte) continue;
      CAPTURE(i, byte);
      CHECK_THAT(error_with(i, byte, 2), Contains(path + ": "));
      CHECK(DamagedFile(folder) == path);  // `troupe ckpt verify`
    }
  }
  for (std::size_t i = data; i < whole.size(); i += i + 64 < whole.size() ? 61 : 1) {
    for (const int tp : {1, 2, 4}) {
      CAPTURE(i, tp);
      CHECK_THAT(error_with(i, static_cast<char>(whole[i] ^ 1), tp),
                 StartsWith(folder + ": tensor ") &&
                     Contains(" was damaged since it was written, in " + kOwn) && EndsWith(remove));
      CHECK(DamagedFile(folder) == path);
    }
  }
  WriteBytes(path, whole);
  CHECK(JobErrorOf(folder) == "no error");
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
    CHECK_THAT(JobErrorOf(folder),
               Contains("was damaged since it was written, in ") && EndsWith(remove));
  }
  SECTION("another step") {
    WriteShard(FakeProgram(kShards[0], 2, true), kShards[0], {folder, 118});
    CHECK(ErrorOf(folder) == path + ": its header has step \"118\", expected \"120\"" + remove);
    CHECK(ErrorOf(folder, kShards[2]) == ErrorOf(folder));
  }
  SECTION("another shard, of the same size") {
    const std::string other = folder + "/" + ShardFileName(kShards[1]);
    const auto size = std::filesystem::file_size(other);
    std::filesystem::copy_file(path, other, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(other, size);
    CHECK_THAT(ErrorOf(folder, kShards[1]), Contains(other + ": "));
  }
}

TEST_CASE("a checkpoint is read in every layout, from no more bytes than a shard holds",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  const int dp = GENERATE(1, 3);
  const int tp = GENERATE(1, 2, 4, 8);
  const auto values = ReadAllInto(folder, dp, tp);
  const auto shards = FakeShards(dp, tp);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    INFO(ToString(shards[i]));
    CHECK(values[i] == FakeProgram(shards[i], tp, true).Values());
  }
  FakeProgram last(shards.back(), tp);
  const LoadedShard loaded = ReadShard(last, shards.back(), {folder, {}});
  std::uint64_t headers = 0;
  for (const auto& shard : {kShards[0], kShards[1]}) {
    headers += SafetensorsReader(folder + "/" + ShardFileName(shard)).data_begin();
  }
  CHECK(loaded.bytes_read <= loaded.bytes_held + headers);
}

TEST_CASE("a shard reads at most 1.05 times the bytes that it holds", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  const auto program = [](const ShardAddress& shard, int tp, bool columns) {
    FakeProgram made(shard, tp);
    made.pieces.clear();
    for (const TensorKind kind : {TensorKind::kParameter, TensorKind::kFirstMoment}) {
      TensorPiece piece{
          .name = "m.wide", .global_shape = {1536, 512}, .offsets = {0, 0}, .value = {}};
      Shape shape = piece.global_shape;
      const std::size_t cut = columns ? 1 : 0;
      shape[cut] /= tp;
      piece.offsets[cut] = shape[cut] * shard.tp;
      piece.value = Buffer::Zeros(shape, DType::kFloat32);
      made.pieces[kind].push_back(piece);
    }
    return made;
  };
  const bool columns = GENERATE(false, true);
  std::vector<WrittenShard> written;
  for (const ShardAddress& shard : FakeShards(1, 4)) {
    written.push_back({shard, WriteShard(program(shard, 4, columns), shard, {folder, 1})});
  }
  WriteManifest(folder, MakeManifest({.step = 1}, written));
  for (const bool cut : {false, true}) {
    for (const int tp : {1, 2, 8}) {
      for (const ShardAddress& shard : FakeShards(1, tp)) {
        FakeProgram reader = program(shard, tp, cut);
        const LoadedShard loaded = ReadShard(reader, shard, {folder, {}});
        CHECK(loaded.bytes_held == 2U * 4 * 1536 * 512 / static_cast<unsigned>(tp));
        CHECK(static_cast<double>(loaded.bytes_read) <=
              1.05 * static_cast<double>(loaded.bytes_held));
      }
    }
  }
}

TEST_CASE("a module that is asked for begins with its own values where the checkpoint has none",
          "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  WriteAll(folder);
  FakeProgram program(kShards[0], 2);
  program.pieces[TensorKind::kParameter][1].name = "n.scale";
  program.pieces[TensorKind::kParameter][1].value.as<double>()[2] = 7.0;
  CHECK_THROWS_WITH(ReadShard(program, kShards[0], {folder, {"m"}}),
                    ToString(kShards[0]) +
                        ": tensor parameter/n.scale: expected [5] of float64 at [0] of [5] in " +
                        folder + ", which has none");
  ReadShard(program, kShards[0], {folder, {"n"}});
  CHECK(program.pieces[TensorKind::kParameter][1].value.as<double>()[2] == 7.0);
  CHECK(program.pieces[TensorKind::kParameter][0].value.as<float>()[0] != 0.0F);
}

TEST_CASE("tensors that do not fit the program are refused by name and shape", "[checkpoint]") {
  const TemporaryDirectory directory;
  const std::string folder = directory.File("a");
  const auto written = WriteAll(folder);
  SECTION("another shape") {
    FakeProgram program(kShards[0], 2);
    for (auto& piece : program.pieces[TensorKind::kParameter]) piece.global_shape[0] += 1;
    CHECK_THROWS_WITH(ReadShard(program, kShards[0], {folder, {}}),
                      ToString(kShards[0]) +
                          ": tensor parameter/m.matrix: expected [65, 32], but " + folder +
                          " has [64, 32]");
  }
  SECTION("no numbers with a fraction") {
    FakeProgram program(kShards[0], 2);
    program.pieces[TensorKind::kParameter][0].value = Buffer::Zeros({32, 32}, DType::kInt32);
    CHECK_THROWS_WITH(ReadShard(program, kShards[0], {folder, {}}),
                      Contains("expected int32, but " + folder + " has F32"));
  }
  SECTION("a type in the file that is not the manifest's") {
    ChangeFile(folder, written, kOwn, [](auto& tensors, auto&) {
      TensorOf(tensors, "parameter/m.matrix").value = Buffer::Zeros({32, 32}, DType::kInt32);
    });
    CHECK_THAT(ErrorOf(folder), Contains("expected a piece of [64, 32] of F32, got one of [64, 32] "
                                         "of I32"));
  }
  SECTION("no place") {
    ChangeFile(folder, written, kOwn,
               [](auto&, auto& metadata) { metadata.erase("second_moment/m.norm"); });
    CHECK_THAT(ErrorOf(folder), Contains("its metadata has no place in a larger tensor for [5]"));
  }
  SECTION("a place that is anything of any length") {
    ChangeFile(folder, written, kOwn, [](auto&, auto& metadata) {
      metadata["parameter/m.norm"] = std::string(100'000, '\n');
    });
    CHECK_THAT(ErrorOf(folder), Contains("tensor \"parameter/m.norm\": "));
    CHECK(ErrorOf(folder).size() < 1000);
  }
  SECTION("pieces that do not cover the whole") {
    ChangeFile(folder, written, kOwn, [](auto& tensors, auto&) {
      TensorOf(tensors, "parameter/m.matrix").value = Buffer::Zeros({31, 32}, DType::kFloat32);
    });
    CHECK_THAT(ErrorOf(folder), Contains("2016 elements are saved, expected 2048"));
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
    WriteShard(FakeProgram(kShards[0], 2, true), kShards[0], {folder, 120});
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
  const StoredShard stored = WriteShard(in_folder(FakeProgram(shard, 1, true)), shard, {folder, 7});
  WriteManifest(folder, MakeManifest({.step = 7}, {{shard, stored}}));
  const SafetensorsReader file(folder + "/" + ShardFileName(shard));
  CHECK(file.Find("parameter/m.frozen") == nullptr);
  CHECK(file.Find("parameter/m.norm") != nullptr);
  FakeProgram read = in_folder(FakeProgram(shard, 1));
  ReadShard(read, shard, {folder, {}});
  FakeProgram whole(shard, 1);
  CHECK_THROWS_WITH(ReadShard(whole, shard, {folder, {}}), Contains("m.frozen"));
}

}  // namespace

TEST_CASE("a checkpoint in memory is read as one on a disk", "[checkpoint]") {
  HeldFiles held;
  const SaveOrder order{
      .folder = "/nowhere/memory/a", .step = 120, .many_disks = true, .in_memory = true};
  std::vector<WrittenShard> made;
  for (const ShardAddress& shard : kShards) {
    const FakeProgram program(shard, 2, true);
    const auto pieces = StoredPieces([&](TensorKind kind) { return program.Tensors(kind); });
    MadeShard one = MakeShard(pieces, shard, order, Buffer::AllocateBytes);
    one.stored.disk = "n1";
    held.Put(order.folder, std::move(one.file));
    made.push_back({shard, std::move(one.stored)});
  }
  const std::string manifest = FormatManifest(MakeManifest({.step = 120}, made));
  held.Complete(order.folder, manifest);
  const OpenElsewhere open = [&](const std::string& path) { return held.Open(path); };
  LoadOrder load{.folder = order.folder, .manifest_sum = Sha256Of(manifest), .in_memory = true};
  const auto read_all = [&](int dp, int tp) {
    std::vector<std::vector<double>> values;
    std::vector<StoredTensor> read;
    for (const ShardAddress& shard : FakeShards(dp, tp)) {
      FakeProgram program(shard, tp);
      const LoadedShard loaded = ReadShard(program, shard, load, open);
      read.insert(read.end(), loaded.tensors.begin(), loaded.tensors.end());
      values.push_back(program.Values());
    }
    CheckDigests(load, read, open);
    return values;
  };
  const TemporaryDirectory directory;
  WriteAll(directory.File("c"));
  CHECK(read_all(2, 2) == ReadAllInto(directory.File("c"), 2, 2));
  CHECK(read_all(1, 1) == ReadAllInto(directory.File("c"), 1, 1));
  // A changed value is noticed. The error does not advise the user to remove a folder.
  const Buffer bytes = held.BytesOf(order.folder, kOwn);
  bytes.data()[bytes.num_bytes() - 1] ^= std::byte{1};
  CHECK_THROWS_WITH(read_all(2, 2),
                    Contains("was damaged since it was written") && !Contains("remove"));
  load.manifest_sum = std::string(64, '0');
  held.Clear();
  CHECK_THROWS_WITH(read_all(2, 2), Contains("not the one that the first process has"));
}

}  // namespace troupe
