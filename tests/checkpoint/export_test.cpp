#include "checkpoint/export.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "plan/stage_parts.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::string Oracle(const std::string& family) {
  return fs::absolute("tests/oracle/" + family).string();
}

Config Load(const ScratchFolder& scratch, const std::string& toml) {
  return LoadConfig(scratch.Write("run.toml", toml + "[data]\ntrain = \"none.json\"\n"
                                                     "tokenizer = \"sentencepiece:none.model\"\n"))
      .config;
}

std::string TwoModules(const std::string& vision, const std::string& language,
                       const std::string& through) {
  return "cluster.ranks = 2\n[modules.vision]\nranks = \"0\"\n" + vision +
         "\n[modules.language]\nranks = \"1\"\n" + language +
         "\n[[edges]]\nfrom = \"vision\"\nto = \"language\"\n" + through + "\n";
}

std::string WholeToml(const std::string& family, const std::string& vision = "",
                      const std::string& language = "", const std::string& through = "") {
  return "model.from = \"hf:" + Oracle(family) + "\"\n" + TwoModules(vision, language, through);
}

/// All parameters of `config` with the values that they start with; those without a folder count
/// from a number of their own. Frozen ones that come from a folder are left out, as a run does.
std::vector<NamedTensor> Parameters(const Config& config) {
  std::map<std::string, ParameterSpec> specs;
  for (const ModuleConfig& module : config.modules) {
    for (const ParameterSpec& spec : StageParameters(config, module.name, 0)) {
      specs.emplace(spec.name, spec);
    }
  }
  std::vector<NamedTensor> tensors;
  float next = 1.0F;
  for (const auto& [name, spec] : specs) {
    Buffer value = Buffer::Allocate(spec.shape, DType::kFloat32);
    for (std::int64_t i = 0; i < value.num_elements(); ++i) value.as<float>()[i] = next++;
    ReadWeights(config, {{name, spec.shape, Shape(spec.shape.size(), 0), value}});
    if (!spec.frozen) tensors.push_back({name, value});
  }
  return tensors;
}

struct TensorInFolder {
  StoredType type = StoredType::kFloat32;
  Shape shape;
  std::string bytes;
  friend bool operator==(const TensorInFolder&, const TensorInFolder&) = default;
};
using Stored = std::map<std::string, TensorInFolder>;

Stored Contents(const std::string& folder) {
  Stored stored;
  const WeightsFolder weights(folder);
  for (const auto& file : weights.files()) {
    const std::string bytes = BytesOf(file->path);
    for (const TensorEntry& entry : file->entries) {
      stored[entry.name] = {entry.type, entry.shape,
                            bytes.substr(entry.begin, entry.end - entry.begin)};
    }
  }
  return stored;
}

std::set<std::string> NamesOf(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : Contents(folder)) names.insert(name);
  return names;
}

nlohmann::json ConfigOf(const std::string& folder) {
  return nlohmann::json::parse(BytesOf(folder + "/config.json"));
}

/// Exports the model as it starts, to OUT of `scratch`.
ExportPlan Export(const ScratchFolder& scratch, const Config& config) {
  WriteSafetensors(scratch / "weights.safetensors", Parameters(config), {{"steps", "3"}});
  const auto saved = SavedParameters::OfFile(scratch / "weights.safetensors");
  CHECK(saved.steps() == 3);
  ExportPlan plan = PlanExport(config, saved, {.image = 30, .pad = 31});
  WriteExport(plan, saved, scratch / "out", [](const std::string&, std::uint64_t) {});
  return plan;
}

TEST_CASE("an untrained whole model comes out as it came in, its file included", "[export]") {
  const std::string family =
      GENERATE("llava_clip_llama", "llava_clip_mistral", "llava_clip_qwen2", "llava_clip_qwen3",
               "llava_siglip_llama", "llava_siglip_mistral", "llava_siglip_qwen2",
               "llava_siglip_qwen3", "llava_next_clip_llama", "llava_next_siglip_qwen2");
  INFO(family);
  const ScratchFolder scratch;
  const ExportPlan plan = Export(scratch, Load(scratch, WholeToml(family)));
  CHECK(plan.model == (family.starts_with("llava_next") ? "LlavaNextForConditionalGeneration"
                                                        : "LlavaForConditionalGeneration"));
  CHECK(Contents(scratch / "out") == Contents(Oracle(family)));
  CHECK(ConfigOf(scratch / "out") == ConfigOf(Oracle(family)));
  CHECK(fs::exists(scratch / "out/preprocessor_config.json"));
}

TEST_CASE("a family alone comes out as it came in", "[export]") {
  const std::string family =
      GENERATE("llama", "llama_tied", "llama_biased", "llama_linear", "llama3", "mistral", "qwen2",
               "qwen3", "mixtral", "qwen2_moe", "qwen3_moe");
  INFO(family);
  const ScratchFolder scratch;
  Export(scratch, Load(scratch,
                       "cluster.ranks = 1\n[modules.language]\nranks = \"0\"\n"
                       "weights = \"hf:" +
                           Oracle(family) + "\"\n"));
  CHECK(Contents(scratch / "out") == Contents(Oracle(family)));
  CHECK(ConfigOf(scratch / "out") == ConfigOf(Oracle(family)));
}

TEST_CASE("pickled tensors come out as they came in, in as many files of safetensors", "[export]") {
  const ScratchFolder scratch;
  fs::copy("tests/oracle/pickles/llama", scratch / "source");
  fs::copy(Oracle("llama") + "/config.json", scratch / "source");
  Export(scratch, Load(scratch,
                       "cluster.ranks = 1\n[modules.language]\nranks = \"0\"\n"
                       "weights = \"hf:source\"\n"));
  CHECK(Contents(scratch / "out") == Contents(Oracle("llama")));
  CHECK(fs::exists(scratch / "out/model-00001-of-00002.safetensors"));
  CHECK(fs::exists(scratch / "out/model-00002-of-00002.safetensors"));
  CHECK(fs::exists(scratch / "out/model.safetensors.index.json"));
}

TEST_CASE("tensors of every type come out with their bits", "[export]") {
  const auto type = GENERATE(StoredType::kBFloat16, StoredType::kFloat16, StoredType::kFloat64);
  const ScratchFolder scratch;
  fs::create_directory(scratch / "source");
  fs::copy(Oracle("llama") + "/config.json", scratch / "source");
  std::vector<TensorToWrite> tensors;
  const Stored from = Contents(Oracle("llama"));
  for (const auto& [name, tensor] : from) {
    tensors.push_back({name, type, tensor.shape, [&](const ByteSink& sink) {
                         const auto count = tensor.bytes.size() / 4;
                         std::vector<std::byte> converted(count * SizeOf(type));
                         ConvertFloats(StoredType::kFloat32,
                                       reinterpret_cast<const std::byte*>(tensor.bytes.data()),
                                       count, type, converted.data());
                         sink(converted);
                       }});
  }
  WriteTensors(scratch / "source/model.safetensors", tensors);
  Export(scratch, Load(scratch,
                       "cluster.ranks = 1\n[modules.language]\nranks = \"0\"\n"
                       "weights = \"hf:source\"\n"));
  CHECK(Contents(scratch / "out") == Contents(scratch / "source"));
}

TEST_CASE("frozen modules are copied from their folder, and the others are not", "[export]") {
  const ScratchFolder scratch;
  const Config config = Load(
      scratch, WholeToml("llava_clip_llama", "frozen = true", "", "through = { on = \"to\" }"));
  std::vector<NamedTensor> changed = Parameters(config);
  for (NamedTensor& tensor : changed) {
    for (std::int64_t i = 0; i < tensor.value.num_elements(); ++i) {
      tensor.value.as<float>()[i] += 1.0F;
    }
  }
  WriteSafetensors(scratch / "weights.safetensors", changed);
  const auto saved = SavedParameters::OfFile(scratch / "weights.safetensors");
  CHECK_FALSE(saved.Has("vision.embeddings.class_embedding"));
  const ExportPlan plan = PlanExport(config, saved, {.image = 30});
  WriteExport(plan, saved, scratch / "out", [](const std::string&, std::uint64_t) {});
  const Stored before = Contents(Oracle("llava_clip_llama"));
  const Stored after = Contents(scratch / "out");
  REQUIRE(after.size() == before.size());
  for (const auto& [name, tensor] : after) {
    INFO(name);
    CHECK((tensor == before.at(name)) == name.starts_with("vision_tower."));
  }
}

TEST_CASE("modules from folders of their own become one LLaVA with its names and sizes",
          "[export]") {
  const ScratchFolder scratch;
  const std::string vision = "weights = \"hf:" + Oracle("clip") + "\"\nfeature_layer = -2";
  const std::string language = "weights = \"hf:" + Oracle("qwen3") + "\"";
  const ExportPlan plan = Export(
      scratch,
      Load(scratch, TwoModules(vision, language, "through = { kind = \"mlp2\", hidden = 16 }")));
  CHECK(plan.model == "LlavaForConditionalGeneration");
  std::set<std::string> expected = {
      "multi_modal_projector.linear_1.bias", "multi_modal_projector.linear_1.weight",
      "multi_modal_projector.linear_2.bias", "multi_modal_projector.linear_2.weight"};
  for (const std::string& name : NamesOf(Oracle("clip"))) expected.insert("vision_tower." + name);
  for (const std::string& name : NamesOf(Oracle("qwen3"))) {
    expected.insert("language_model." + name);
  }
  CHECK(NamesOf(scratch / "out") == expected);
  const nlohmann::json config = ConfigOf(scratch / "out");
  CHECK(config["model_type"] == "llava");
  CHECK(config["image_token_index"] == 30);
  CHECK(config["pad_token_id"] == 31);
  CHECK(config["vision_feature_layer"] == -2);
  CHECK(config["vision_feature_select_strategy"] == "default");
  CHECK(config["vision_config"] == ConfigOf(Oracle("clip")));
  CHECK(config["text_config"] == ConfigOf(Oracle("qwen3")));
  CHECK(BytesOf(scratch / "out/processor_config.json").find("LlavaProcessor") != std::string::npos);
}

constexpr const char* kVit =
    "kind = \"vit\"\nimage_size = 8\npatch_size = 4\nhidden = 8\nlayers = 3\nheads = 2\n"
    "mlp_hidden = 10\nfeature_layer = -2";
constexpr const char* kLlama =
    "kind = \"llama\"\nvocab = 40\nhidden = 8\nlayers = 2\nheads = 4\nkv_heads = 2\n"
    "mlp_hidden = 10\ncontext = 64";

TEST_CASE("a model that started from random values has the tensors that transformers expects",
          "[export]") {
  const ScratchFolder scratch;
  Export(scratch,
         Load(scratch, TwoModules(kVit, kLlama, "through = { kind = \"mlp2\", hidden = 8 }")));
  // That folder has a third layer, which no feature needs.
  std::set<std::string> expected = NamesOf(Oracle("llava_clip_llama"));
  std::erase_if(expected, [](const std::string& name) {
    return name.find("encoder.layers.2.") != std::string::npos;
  });
  CHECK(NamesOf(scratch / "out") == expected);
  const nlohmann::json config = ConfigOf(scratch / "out");
  CHECK(config["vision_config"]["num_hidden_layers"] == 2);
  CHECK(config["vision_feature_layer"] == -1);
  CHECK(config["text_config"]["vocab_size"] == 40);
  // What is written is read again as the same model.
  const Config again =
      Load(scratch, "model.from = \"hf:out\"\n" + TwoModules("image_fit = \"crop\"", "", ""));
  CHECK(again.modules[0].model->field()->row_shape() == Shape{3, 8, 8});
  CHECK(again.modules[1].model->row_width() == 8);
  CHECK(again.edges[0].through->hidden == 8);
}

TEST_CASE("a LLaVA whose images are cut into tiles is a LLaVA-NeXT", "[export]") {
  const ScratchFolder scratch;
  const std::string tiles = "\nimage_fit = \"anyres\"\nimage_grids = [\"2x1\", \"1x3\"]\n";
  const bool random = GENERATE(true, false);  // else a LLaVA-1.5, which has no newline row
  fs::copy(Oracle("llava_clip_llama"), scratch / "source");
  scratch.Write("source/processor_config.json", R"({"processor_class": "LlavaProcessor"})");
  const Config config =
      Load(scratch,
           random ? TwoModules(kVit + tiles, kLlama, "through = { kind = \"mlp2\", hidden = 8 }")
                  : "model.from = \"hf:source\"\n" + TwoModules(tiles, "", ""));
  const ExportPlan plan = Export(scratch, config);
  CHECK(plan.model == "LlavaNextForConditionalGeneration");
  std::set<std::string> expected = NamesOf(Oracle("llava_next_clip_llama"));
  if (random) {
    std::erase_if(expected, [](const std::string& name) {
      return name.find("encoder.layers.2.") != std::string::npos;
    });
  }
  CHECK(NamesOf(scratch / "out") == expected);
  const nlohmann::json json = ConfigOf(scratch / "out");
  CHECK(json["model_type"] == "llava_next");
  CHECK(json["image_grid_pinpoints"] == nlohmann::json::parse("[[16, 8], [8, 24]]"));
  const auto processor = nlohmann::json::parse(BytesOf(scratch / "out/preprocessor_config.json"));
  CHECK(processor["image_processor_type"] == "LlavaNextImageProcessor");
  CHECK(processor["image_grid_pinpoints"] == json["image_grid_pinpoints"]);
  CHECK(BytesOf(scratch / "out/processor_config.json").find("LlavaNextProcessor") !=
        std::string::npos);
  if (random) CHECK(json["image_seq_length"] == 4);
  Config again = Load(scratch, "model.from = \"hf:out\"\n" + TwoModules("", "", ""));
  CHECK(again.modules[0].model->images()->grids == std::vector<TileGrid>{{2, 1}, {1, 3}});
  CHECK(HasNewline(again, again.edges[0]));
}

TEST_CASE("a LLaVA-NeXT that trained on squares is a LLaVA", "[export]") {
  const ScratchFolder scratch;
  const Config config = Load(scratch, WholeToml("llava_next_clip_llama", "image_fit = \"pad\"\n"));
  CHECK(Export(scratch, config).model == "LlavaForConditionalGeneration");
  CHECK(NamesOf(scratch / "out") == NamesOf(Oracle("llava_clip_llama")));
  const nlohmann::json json = ConfigOf(scratch / "out");
  CHECK(json["model_type"] == "llava");
  CHECK_FALSE(json.contains("image_grid_pinpoints"));
  CHECK(BytesOf(scratch / "out/processor_config.json").find("\"LlavaProcessor\"") !=
        std::string::npos);
  CHECK(BytesOf(scratch / "out/preprocessor_config.json").find("LlavaImageProcessor") !=
        std::string::npos);
}

TEST_CASE("a frozen projector needs the newline row of its folder", "[export]") {
  const ScratchFolder scratch;
  const Config config = Load(scratch, WholeToml("llava_clip_llama", "image_fit = \"anyres\"\n", "",
                                                "through = { frozen = true }"));
  CHECK_THROWS_WITH(CheckWeights(config),
                    "tests/oracle/llava_clip_llama: expected tensor \"image_newline\", the row "
                    "after each line of an image in tiles, found none; a projector that trains "
                    "starts it from random values");
  // A LLaVA-NeXT must have it, whether it trains or not.
  fs::copy(Oracle("llava_clip_llama"), scratch / "source");
  fs::copy(Oracle("llava_next_clip_llama") + "/config.json", scratch / "source",
           fs::copy_options::overwrite_existing);
  const Config next = Load(scratch, "model.from = \"hf:source\"\n" + TwoModules("", "", ""));
  CHECK_THROWS_WITH(CheckWeights(next), Catch::EndsWith("in tiles, found none"));
}

TEST_CASE("images are prepared by a reader of the folder as in the run", "[export]") {
  const std::string fit = GENERATE("crop", "pad", "stretch", "anyres");
  const ScratchFolder scratch;
  const std::string keys = std::string(kVit) + "\nimage_fit = \"" + fit +
                           "\"\nimage_mean = [0.1, 0.2, 0.3]\nimage_resampling = \"bilinear\"\n";
  const Config config =
      Load(scratch, TwoModules(keys, kLlama, "through = { kind = \"mlp2\", hidden = 8 }"));
  Export(scratch, config);
  Config again = Load(scratch, "model.from = \"hf:out\"\n" + TwoModules("", "", ""));
  Config before = config;
  CHECK(*again.modules[0].model->images() == *before.modules[0].model->images());
}

TEST_CASE("what is no LLaVA becomes a folder for each part, and the plan says why", "[export]") {
  const ScratchFolder scratch;
  const std::string other =
      GENERATE("through = { kind = \"linear\" }", "through = { kind = \"mlp2\", hidden = 12 }",
               "through = { kind = \"pixel_shuffle\", hidden = 8 }");
  const ExportPlan plan = Export(scratch, Load(scratch, TwoModules(kVit, kLlama, other)));
  CHECK(plan.model.empty());
  CHECK_THAT(plan.reason, Catch::Contains("; expected "));
  CHECK(ConfigOf(scratch / "out/vision")["model_type"] == "clip_vision_model");
  CHECK(ConfigOf(scratch / "out/language")["model_type"] == "llama");
  const std::string first = other.find("linear") != std::string::npos ? "linear" : "linear_1";
  CHECK(NamesOf(scratch / "out/vision_to_language").contains(first + ".weight"));
}

TEST_CASE("names of newer programs become those of the Hub", "[export]") {
  const ScratchFolder scratch;
  fs::create_directory(scratch / "source");
  fs::copy(Oracle("llava_siglip_qwen2") + "/config.json", scratch / "source");
  const Stored from = Contents(Oracle("llava_siglip_qwen2"));
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& name, const TensorInFolder& tensor) {
    tensors.push_back({name, tensor.type, tensor.shape, [&tensor](const ByteSink& sink) {
                         sink(std::as_bytes(std::span(tensor.bytes)));
                       }});
  };
  for (const auto& [name, tensor] : from) {
    std::string renamed = "model." + name;
    if (name.starts_with("language_model.model.")) {
      renamed = "model.language_model." + name.substr(21);
    }
    if (name.starts_with("language_model.lm_head.")) renamed = name.substr(15);
    add(renamed, tensor);
  }
  WriteTensors(scratch / "source/model.safetensors", tensors);
  Export(scratch, Load(scratch, "model.from = \"hf:source\"\n" + TwoModules("", "", "")));
  CHECK(Contents(scratch / "out") == from);
}

TEST_CASE("a new projector takes the place of the folder's", "[export]") {
  const ScratchFolder scratch;
  Export(scratch, Load(scratch, WholeToml("llava_clip_llama", "", "",
                                          "through = { kind = \"mlp2\", hidden = 8 }")));
  const Stored before = Contents(Oracle("llava_clip_llama"));
  const Stored after = Contents(scratch / "out");
  REQUIRE(after.size() == before.size());
  for (const auto& [name, tensor] : after) {
    INFO(name);
    CHECK((tensor == before.at(name)) != name.starts_with("multi_modal_projector."));
  }
}

TEST_CASE("a larger vocabulary has more rows and says so", "[export]") {
  const ScratchFolder scratch;
  Export(scratch, Load(scratch, WholeToml("llava_clip_qwen2", "", "vocab = 64")));
  const Stored after = Contents(scratch / "out");
  const Stored before = Contents(Oracle("llava_clip_qwen2"));
  for (const char* name :
       {"language_model.model.embed_tokens.weight", "language_model.lm_head.weight"}) {
    CHECK(after.at(name).shape == Shape{64, 8});
    CHECK(after.at(name).bytes.starts_with(before.at(name).bytes));
  }
  CHECK(ConfigOf(scratch / "out")["text_config"]["vocab_size"] == 64);
}

TEST_CASE("a parameter that was not saved is named, and nothing is written", "[export]") {
  const ScratchFolder scratch;
  const Config config = Load(scratch, WholeToml("llava_clip_llama"));
  auto tensors = Parameters(config);
  std::erase_if(tensors, [](const auto& t) { return t.name == "language.norm.weight"; });
  WriteSafetensors(scratch / "weights.safetensors", tensors);
  const auto saved = SavedParameters::OfFile(scratch / "weights.safetensors");
  CHECK_THROWS_WITH(PlanExport(config, saved, {}),
                    "parameter language.norm.weight: expected a saved value, found none");
  scratch.Write("full/file", "");
  CHECK_THROWS_AS(RequireNewFolder(scratch / "weights.safetensors"), std::invalid_argument);
  CHECK_THROWS_AS(RequireNewFolder(""), std::invalid_argument);
}

TEST_CASE("a source that is gone leaves no output", "[export]") {
  const ScratchFolder scratch;
  fs::copy(Oracle("llava_clip_llama"), scratch / "source");
  const Config config =
      Load(scratch, "model.from = \"hf:source\"\n" + TwoModules("frozen = true", "", ""));
  WriteSafetensors(scratch / "weights.safetensors", Parameters(config));
  const auto saved = SavedParameters::OfFile(scratch / "weights.safetensors");
  const ExportPlan plan = PlanExport(config, saved, {.image = 30});
  fs::resize_file(scratch / "source/model.safetensors", 9'000);
  CHECK_THROWS_WITH(
      WriteExport(plan, saved, scratch / "out", [](const std::string&, std::uint64_t) {}),
      Catch::Contains("has shrunk"));
  CHECK_FALSE(fs::exists(scratch / "out"));
  CHECK_FALSE(fs::exists(scratch / "out.partial"));
}

}  // namespace
}  // namespace troupe
