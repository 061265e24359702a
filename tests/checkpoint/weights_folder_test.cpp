#include "checkpoint/weights_folder.hpp"

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "checkpoint/safetensors.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

/// `count` values from `first` on.
Buffer Counting(Shape shape, double first = 0.0) {
  Buffer buffer = Buffer::Allocate(std::move(shape), DType::kFloat32);
  auto* const values = buffer.as<float>();
  std::iota(values, values + buffer.num_elements(), static_cast<float>(first));
  return buffer;
}

TensorPiece PieceOf(Shape whole, std::vector<std::int64_t> offsets, Shape shape,
                    DType type = DType::kFloat64) {
  return {"language.x", std::move(whole), std::move(offsets),
          Buffer::Zeros(std::move(shape), type)};
}

std::vector<double> ValuesOf(const Buffer& buffer) {
  const auto* const values = buffer.as<double>();
  return {values, values + buffer.num_elements()};
}

template <class Work>
std::string ErrorOf(Work work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a slice of a folder's tensor is read along both dimensions, and its bytes alone") {
  const ScratchFolder scratch;
  WriteSafetensors(scratch / "model.safetensors",
                   {{"a", Counting({4, 6})}, {"b", Counting({3}, 100)}});
  const WeightsFolder folder(scratch.path());
  const TensorPiece rows = PieceOf({4, 6}, {1, 0}, {2, 6});
  folder.Read("a", rows);
  CHECK(ValuesOf(rows.value) == std::vector<double>{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
  const TensorPiece columns = PieceOf({4, 6}, {0, 4}, {4, 2});
  folder.Read("a", columns);
  CHECK(ValuesOf(columns.value) == std::vector<double>{4, 5, 10, 11, 16, 17, 22, 23});
  const TensorPiece vector = PieceOf({3}, {1}, {2});
  folder.Read("b", vector);
  CHECK(ValuesOf(vector.value) == std::vector<double>{101, 102});
  CHECK(folder.num_bytes_read() == 4 * (12 + 8 + 2));
}

TEST_CASE("CLIP's first norm is found however it is spelt") {
  const ScratchFolder scratch;
  WriteSafetensors(scratch / "a.safetensors",
                   {{"vision_model.pre_layernorm.weight", Counting({3}, 7)}});
  scratch.Write("model.safetensors.index.json",
                R"({"weight_map": {"vision_model.pre_layernorm.weight": "a.safetensors"}})");
  const WeightsFolder folder(scratch.path());
  const TensorPiece piece = PieceOf({3}, {0}, {3});
  folder.Read("vision_model.pre_layrnorm.weight", piece);
  CHECK(ValuesOf(piece.value) == std::vector<double>{7, 8, 9});
}

TEST_CASE("a folder of several files is read by its index") {
  const ScratchFolder scratch;
  WriteSafetensors(scratch / "one.safetensors", {{"a", Counting({2}, 1)}});
  WriteSafetensors(scratch / "two.safetensors", {{"b", Counting({2}, 5)}});
  const auto index = [&](const std::string& map) {
    scratch.Write("model.safetensors.index.json",
                  "{\"metadata\": {\"total_size\": 16}, \"weight_map\": {" + map + "}}");
  };
  index("\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"");
  const WeightsFolder folder(scratch.path());
  const TensorPiece piece = PieceOf({2}, {0}, {2});
  folder.Read("b", piece);
  CHECK(ValuesOf(piece.value) == std::vector<double>{5, 6});

  const auto error = [&](const std::string& map) {
    index(map);
    const std::string text = ErrorOf([&] { WeightsFolder again(scratch.path()); });
    return text.substr(text.rfind(".json: ") == std::string::npos ? 0 : text.rfind(".json: ") + 7);
  };
  CHECK(error("\"a\": \"../one.safetensors\"") ==
        "tensor \"a\": expected the name of a file in the folder");
  CHECK(error("\"a\": \"two.safetensors\"") == "tensor \"a\" is not in \"two.safetensors\"");
  CHECK(error("\"c\": \"one.safetensors\"") == "tensor \"c\" is not in \"one.safetensors\"");
  CHECK_THAT(error("\"a\": \"three.safetensors\""),
             Catch::EndsWith("three.safetensors: no such file"));
  CHECK(error("\"a\": 5") == "tensor \"a\": expected the name of a file in the folder");
  WriteSafetensors(scratch / "two.safetensors", {{"a", Counting({2}, 5)}});
  CHECK_THAT(error("\"a\": \"one.safetensors\", \"b\": \"two.safetensors\""),
             Catch::Contains("tensor \"a\" is also in "));
}

TEST_CASE("a folder's faults are one line that names the file") {
  const ScratchFolder scratch;
  CHECK(ErrorOf([&] { WeightsFolder folder(scratch.path()); }) ==
        scratch.path() +
            ": expected model.safetensors, pytorch_model.bin or one of them with .index.json, "
            "found none");
  const std::string file = scratch / "model.safetensors";
  Buffer integers = Buffer::Zeros({2}, DType::kInt64);
  WriteSafetensors(file, {{"a", Counting({4, 6})}, {"n", integers}});
  const WeightsFolder folder(scratch.path());
  CHECK(ErrorOf([&] { folder.Read("z", PieceOf({2}, {0}, {2})); }) ==
        scratch.path() + ": expected tensor \"z\" for language.x, found none");
  CHECK(ErrorOf([&] {
          folder.Read("a", PieceOf({4, 7}, {0, 0}, {4, 7}));
        }) == file + ": tensor \"a\": expected [4, 7] for language.x, got [4, 6]");
  CHECK(ErrorOf([&] { folder.Read("n", PieceOf({2}, {0}, {2})); }) ==
        file + ": tensor \"n\": expected F64, F32, F16 or BF16, got I64");
  std::filesystem::resize_file(file, 16);
  CHECK(ErrorOf([&] {
          folder.Read("a", PieceOf({4, 6}, {0, 0}, {4, 6}));
        }) == file + ": it has shrunk while it was read");
  CHECK_THAT(ErrorOf([&] { WeightsFolder again(scratch.path()); }), Catch::StartsWith(file + ": "));
}

TEST_CASE("slices of pickled tensors are read from one file, and from several by their index") {
  const ScratchFolder scratch;
  std::filesystem::copy("tests/oracle/pickles/tensors.bin", scratch / "pytorch_model.bin");
  const WeightsFolder folder(scratch.path());
  const TensorPiece columns = PieceOf({2, 2}, {0, 1}, {2, 1});
  folder.Read("view", columns);
  CHECK(ValuesOf(columns.value) == std::vector<double>{5, 7});
  CHECK(folder.num_bytes_read() == 4 * 2);

  const WeightsFolder pickled("tests/oracle/pickles/llama");
  const WeightsFolder expected("tests/oracle/llama");
  CHECK(pickled.files().size() == 2);
  for (const TensorEntry& entry : expected.files().front()->entries) {
    INFO(entry.name);
    const TensorPiece got = PieceOf(entry.shape, Shape(entry.shape.size(), 0), entry.shape);
    const TensorPiece same = PieceOf(entry.shape, Shape(entry.shape.size(), 0), entry.shape);
    pickled.Read(entry.name, got);
    expected.Read(entry.name, same);
    CHECK(ValuesOf(got.value) == ValuesOf(same.value));
  }
}

TEST_CASE("one file comes before an index, and safetensors come before pickles") {
  const ScratchFolder scratch;
  scratch.Write("pytorch_model.bin", "x");
  CHECK(ErrorOf([&] { WeightsFolder folder(scratch.path()); }) ==
        scratch /
            "pytorch_model.bin: expected a zip file of torch.save, found another file or a part of "
            "one");
  WriteSafetensors(scratch / "model.safetensors", {{"a", Counting({1}, 1)}});
  WriteSafetensors(scratch / "old.safetensors", {{"a", Counting({1}, 2)}});
  scratch.Write("model.safetensors.index.json", R"({"weight_map": {"a": "old.safetensors"}})");
  const WeightsFolder folder(scratch.path());
  const TensorPiece piece = PieceOf({1}, {0}, {1});
  folder.Read("a", piece);
  CHECK(ValuesOf(piece.value) == std::vector<double>{1});
}

TEST_CASE("folders with other tensors have other digests") {
  const ScratchFolder scratch;
  Config config;
  ModuleConfig module;
  module.name = "language";
  module.weights = "hf:" + scratch.path();
  config.modules = {module};
  CHECK(WeightsDigests(config).empty());  // there are no weights yet
  WriteSafetensors(scratch / "model.safetensors", {{"a", Counting({4}, 1)}});
  const std::string first = WeightsDigests(config);
  CHECK_THAT(first, Catch::StartsWith("modules.language.weights (headers and samples) = sha256 "));
  CHECK(WeightsDigests(config) == first);
  WriteSafetensors(scratch / "model.safetensors", {{"a", Counting({4}, 2)}});
  CHECK(WeightsDigests(config) != first);

  Buffer large = Counting({4096});  // its first bytes are not among the last of the file
  WriteSafetensors(scratch / "model.safetensors", {{"a", large}});
  const std::string before = WeightsDigests(config);
  large.as<float>()[0] = 7.0F;
  WriteSafetensors(scratch / "model.safetensors", {{"a", large}});
  CHECK(WeightsDigests(config) != before);
}

/// A projector from 2 to 3 wide through 4, on an edge of modules that start from random values.
Config ProjectorConfigOf(ProjectorKind kind, const std::string& folder) {
  Config config;
  config.modules = {ModuleConfig{.name = "vision"}, ModuleConfig{.name = "language"}};
  config.edges = {EdgeConfig{.from = "vision",
                             .to = "language",
                             .through = ProjectorConfig{.kind = kind, .weights = "hf:" + folder}}};
  return config;
}

TEST_CASE("a projector is read under every name that programs give it") {
  struct Names {
    ProjectorKind kind;
    const char* first;
    const char* second;
    const char* norm;
  };
  const auto names =
      GENERATE(Names{ProjectorKind::kMlp2, "multi_modal_projector.linear_1",
                     "multi_modal_projector.linear_2", ""},
               Names{ProjectorKind::kMlp2, "model.multi_modal_projector.linear_1",
                     "model.multi_modal_projector.linear_2", ""},
               Names{ProjectorKind::kMlp2, "model.mm_projector.0", "model.mm_projector.2", ""},
               Names{ProjectorKind::kLinear, "model.mm_projector", "", ""},
               Names{ProjectorKind::kPixelShuffle, "mlp1.1", "mlp1.3", "mlp1.0"});
  INFO(names.first);
  const ScratchFolder scratch;
  std::vector<NamedTensor> tensors = {{names.first + std::string(".weight"), Counting({4, 2})}};
  std::vector<TensorPiece> pieces;
  const auto want = [&](const std::string& own, const Shape& shape) {
    pieces.push_back(PieceOf(shape, std::vector<std::int64_t>(shape.size(), 0), shape));
    pieces.back().name = "vision_to_language." + own;
  };
  want(names.kind == ProjectorKind::kLinear ? "linear.weight" : "linear_1.weight", {4, 2});
  if (names.kind != ProjectorKind::kLinear) {
    tensors.push_back({names.second + std::string(".bias"), Counting({3}, 50)});
    want("linear_2.bias", {3});
  }
  if (names.kind == ProjectorKind::kPixelShuffle) {
    tensors.push_back({names.norm + std::string(".bias"), Counting({2}, 70)});
    want("layer_norm.bias", {2});
  }
  WriteSafetensors(scratch / "model.safetensors", tensors);
  ReadWeights(ProjectorConfigOf(names.kind, scratch.path()), pieces);
  CHECK(ValuesOf(pieces[0].value) == std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7});
  if (pieces.size() > 1) CHECK(ValuesOf(pieces[1].value) == std::vector<double>{50, 51, 52});
  if (pieces.size() > 2) CHECK(ValuesOf(pieces[2].value) == std::vector<double>{70, 71});
}

TEST_CASE("a folder without the projector that is asked for is refused") {
  const ScratchFolder scratch;
  WriteSafetensors(scratch / "model.safetensors", {{"mm.weight", Counting({4, 2})}});
  TensorPiece piece = PieceOf({4, 2}, {0, 0}, {4, 2});
  piece.name = "vision_to_language.linear_1.weight";
  CHECK(ErrorOf([&] {
          ReadWeights(ProjectorConfigOf(ProjectorKind::kMlp2, scratch.path()), {piece});
        }) == scratch.path() +
                  ": expected the tensors of a projector, found none such as "
                  "multi_modal_projector.linear_1.weight");
}

TEST_CASE("tokens that a folder does not know start as the mean of those it knows") {
  const ScratchFolder scratch;
  // Columns 0, 1, 2 of rows 0 to 3 have the means 4.5, 5.5 and 6.5.
  WriteSafetensors(scratch / "model.safetensors", {{"a", Counting({4, 3})}});
  const WeightsFolder folder(scratch.path());
  const TensorPiece rows = PieceOf({6, 3}, {3, 0}, {3, 3});
  folder.Read("a", rows, /*may_grow=*/true);
  CHECK(ValuesOf(rows.value) == std::vector<double>{9, 10, 11, 4.5, 5.5, 6.5, 4.5, 5.5, 6.5});
  const TensorPiece columns = PieceOf({6, 3}, {4, 1}, {2, 2}, DType::kFloat64);
  folder.Read("a", columns, /*may_grow=*/true);
  CHECK(ValuesOf(columns.value) == std::vector<double>{5.5, 6.5, 5.5, 6.5});
  CHECK_THROWS_WITH(folder.Read("a", rows),
                    Catch::Contains("expected [6, 3] for language.x, got [4, 3]"));
  CHECK_THROWS_WITH(folder.Read("a", PieceOf({3, 3}, {0, 0}, {3, 3}), /*may_grow=*/true),
                    Catch::Contains("expected [3, 3] for language.x, got [4, 3]"));
}

}  // namespace
}  // namespace troupe
