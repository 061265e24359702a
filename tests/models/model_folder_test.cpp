#include "models/model_folder.hpp"

#include <string>

#include <catch2/catch.hpp>

#include "kinds/llama.hpp"
#include "kinds/siglip.hpp"
#include "kinds/vit.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

FolderModule Read(const std::string& json, const ModuleKind* kind = nullptr) {
  const ScratchFolder folder;
  folder.Write("config.json", json);
  return ReadFolderModule(folder.path(), kind);
}

/// Returns what is thrown, after the file's name.
std::string ErrorOf(const std::string& json, const ModuleKind* kind = nullptr) {
  try {
    Read(json, kind);
  } catch (const ModelFolderError& error) {
    const std::string text = error.what();
    return text.substr(text.find("config.json: ") + 13);
  }
  return "no error";
}

template <class Config>
Config As(const FolderModule& read) {
  return dynamic_cast<const Config&>(*read.model);
}

constexpr const char* kLlava7b = R"({
  "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
  "image_token_index": 32000, "vision_feature_layer": -2,
  "vision_feature_select_strategy": "default",
  "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5", "max_position_embeddings": 4096,
    "model_type": "llama", "rms_norm_eps": 1e-05, "torch_dtype": "float16", "vocab_size": 32064},
  "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
    "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24,
    "patch_size": 14, "projection_dim": 768, "vocab_size": 32000}})";

TEST_CASE("the language model of LLaVA-1.5 has the sizes that its config.json leaves out") {
  const FolderModule read = Read(kLlava7b, &kLlama);
  const auto llama = As<LlamaConfig>(read);
  CHECK(llama.vocab == 32'064);
  CHECK(llama.hidden == 4'096);
  CHECK(llama.mlp_hidden == 11'008);
  CHECK(llama.layers == 32);
  CHECK(llama.heads == 32);
  CHECK(llama.kv_heads == 32);
  CHECK(llama.context == 4'096);
  CHECK(llama.norm_epsilon == 1e-5);
  CHECK(llama.rope == RotaryConfig());
  CHECK_FALSE(llama.tied_head);
  std::string defaulted;
  for (const DefaultedKey& key : read.defaulted) defaulted += key.key + "=" + key.value + " ";
  CHECK_THAT(defaulted, Catch::Contains("text_config.hidden_size=4096 "));
  CHECK_THAT(defaulted, Catch::Contains("text_config.rope_theta=10000.0 "));
  CHECK_THAT(defaulted, !Catch::Contains("vocab_size"));
}

TEST_CASE("a part of a whole model is found by what it does") {
  const ScratchFolder folder;
  folder.Write("config.json", kLlava7b);
  CHECK(&ReadFolderModule(folder.path(), nullptr, true).model.kind() == &kVit);
  CHECK(&ReadFolderModule(folder.path(), nullptr, false).model.kind() == &kLlama);
}

ProjectorShape ProjectorOf(const std::string& json) {
  const ScratchFolder folder;
  folder.Write("config.json", json);
  return ReadFolderProjector(folder.path()).shape;
}

std::string ProjectorError(const std::string& json) {
  try {
    ProjectorOf(json);
  } catch (const ModelFolderError& error) {
    const std::string text = error.what();
    return text.substr(text.find("config.json: ") + 13);
  }
  return "no error";
}

TEST_CASE("the projector of LLaVA-1.5 is two linears as wide as its language model") {
  const ProjectorShape shape = ProjectorOf(kLlava7b);
  CHECK(shape.kind == ProjectorKind::kMlp2);
  CHECK(shape.hidden == 4'096);
}

constexpr const char* kOriginal = R"({
  "architectures": ["LlavaLlamaForCausalLM"], "model_type": "MODEL", "hidden_size": 5120,
  "intermediate_size": 13824, "num_attention_heads": 40, "num_hidden_layers": 40,
  "vocab_size": 32000, "mm_projector_type": "PROJECTOR",
  "mm_vision_tower": "openai/clip-vit-large-patch14-336"})";

std::string Original(const std::string& model, const std::string& projector) {
  std::string json = kOriginal;
  json.replace(json.find("MODEL"), 5, model);
  json.replace(json.find("PROJECTOR"), 9, projector);
  return json;
}

TEST_CASE("a folder of LLaVA's own code holds a language model and a projector") {
  for (const char* type : {"llava", "llava_llama"}) {
    INFO(type);
    const auto llama = As<LlamaConfig>(Read(Original(type, "mlp2x_gelu")));
    CHECK(llama.hidden == 5'120);
    CHECK(llama.heads == 40);
    const ProjectorShape shape = ProjectorOf(Original(type, "mlp2x_gelu"));
    CHECK(shape.kind == ProjectorKind::kMlp2);
    CHECK(shape.hidden == 5'120);
    CHECK(ProjectorOf(Original(type, "linear")).kind == ProjectorKind::kLinear);
    CHECK(ErrorOf(Original(type, "mlp2x_gelu"), &kVit) ==
          "model_type: expected a \"vit\", found a \"llama\"");
  }
}

TEST_CASE("projectors that are not supported are refused by key") {
  CHECK(ProjectorError(Original("llava", "mlp3x_gelu")) ==
        "mm_projector_type: expected \"mlp2x_gelu\" or \"linear\", got \"mlp3x_gelu\"");
  CHECK(ProjectorError(R"({"model_type": "llava", "text_config": {},
                           "projector_hidden_act": "relu"})") ==
        "projector_hidden_act: expected \"gelu\", got \"relu\"");
  CHECK(ProjectorError(R"({"model_type": "llava", "text_config": {},
                           "multimodal_projector_bias": false})") ==
        "multimodal_projector_bias: a projector without biases is not supported yet");
  CHECK(ProjectorError(R"({"model_type": "llama"})") ==
        "model_type: expected a whole model, \"llava\", \"llava_next\" or \"llava_llama\", got "
        "\"llama\"");
}

TEST_CASE("the vision encoder of LLaVA-1.5 gives the last layer but one without class tokens") {
  const auto vit = As<VitConfig>(Read(kLlava7b, &kVit));
  CHECK(vit.image_size == 336);
  CHECK(vit.hidden == 1'024);
  CHECK(vit.mlp_hidden == 4'096);
  CHECK(vit.layers == 24);
  CHECK(vit.feature_layer == -2);
  CHECK(vit.activation == MlpActivation::kQuickGelu);
  CHECK_FALSE(vit.class_token);
  CHECK_FALSE(vit.final_norm);
}

TEST_CASE("which module of a whole model is meant must be said") {
  CHECK(ErrorOf(kLlava7b) == "model_type: found a \"vit\" and a \"llama\"; state `kind`");
  CHECK(ErrorOf(kLlava7b, &kSiglip) ==
        "model_type: expected a \"siglip\", found a \"vit\" and a \"llama\"");
}

TEST_CASE("whole folders of CLIP and SigLIP give their vision encoder as it stands alone") {
  const auto vit = As<VitConfig>(
      Read(R"({"model_type": "clip", "text_config": {}, "vision_config": {"hidden_size": 8}})"));
  CHECK(vit.hidden == 8);
  CHECK(vit.image_size == 224);
  CHECK(vit.patch_size == 32);
  CHECK(vit.feature_layer == -1);
  const auto siglip = As<SiglipConfig>(Read(
      R"({"model_type": "siglip", "text_config": {}, "vision_config": {"image_size": 384,
          "patch_size": 14, "model_type": "siglip_vision_model"}})"));
  CHECK(siglip.num_patches() == 729);
  CHECK(siglip.drops_border);
  CHECK(siglip.feature_layer == -1);
  CHECK(siglip.final_norm);
  CHECK(siglip.activation == MlpActivation::kGeluTanh);
}

TEST_CASE("a part that is not supported does not hide the other") {
  const std::string json =
      R"({"model_type": "llava", "vision_config": {"model_type": "pixtral"}, "text_config": {}})";
  CHECK(As<LlamaConfig>(Read(json, &kLlama)).hidden == 4'096);
  CHECK_THAT(ErrorOf(json, &kVit), Catch::StartsWith("vision_config.model_type: expected ") &&
                                       Catch::EndsWith(", got \"pixtral\""));
}

TEST_CASE("a folder that is not there is named as one of this machine") {
  CHECK_THROWS_WITH(ReadFolderModule("openai/clip", nullptr),
                    "openai/clip: expected a folder on this machine, found none");
}

TEST_CASE("every family of language models has its own defaults") {
  const auto of = [](const std::string& keys) {
    return As<LlamaConfig>(Read("{\"model_type\": " + keys + "}"));
  };
  CHECK(of("\"mistral\", \"sliding_window\": null").kv_heads == 8);
  CHECK_FALSE(of("\"mistral\", \"sliding_window\": null").sliding_window);
  CHECK(of("\"mistral\"").sliding_window == 4'096);
  CHECK(of("\"qwen2\"").attention_bias == AttentionBias::kQkv);
  CHECK_FALSE(of("\"qwen2\"").sliding_window);
  CHECK(of("\"qwen2\", \"use_sliding_window\": true, \"sliding_window\": 64").sliding_window == 64);
  CHECK_FALSE(
      of("\"qwen2\", \"use_sliding_window\": true, \"max_window_layers\": 32").sliding_window);
  CHECK(of("\"mistral\", \"num_key_value_heads\": null").kv_heads == 32);
  CHECK(of("\"qwen3\"").head_norms);
  CHECK(of("\"qwen3\"").head_dim == 128);
  CHECK(of("\"llama\", \"attention_bias\": true").attention_bias == AttentionBias::kAll);
}

TEST_CASE("rotary positions are read in every form of versions 4 and 5") {
  const auto rope = [](const std::string& keys) {
    return As<LlamaConfig>(Read("{\"model_type\": \"llama\", " + keys + "}")).rope;
  };
  const std::string values =
      "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
      "\"original_max_position_embeddings\": 8192}";
  const RotaryConfig llama3 = {.base = 5e5,
                               .scaling = RopeScaling::kLlama3,
                               .factor = 8.0,
                               .low_frequency = 1.0,
                               .high_frequency = 4.0,
                               .original_context = 8'192};
  CHECK(rope("\"rope_theta\": 5e5, \"rope_scaling\": {\"rope_type\": \"llama3\", " + values) ==
        llama3);
  CHECK(rope("\"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": \"llama3\", " + values) ==
        llama3);
  CHECK(rope("\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}").factor == 2.0);
  CHECK(rope("\"rope_scaling\": {\"type\": \"default\", \"rope_type\": \"linear\"}") ==
        RotaryConfig());
  CHECK(rope("\"rope_scaling\": null") == RotaryConfig());
  CHECK(rope("\"rope_parameters\": {\"rope_theta\": 5e5, \"rope_type\": \"default\"}").base == 5e5);
}

TEST_CASE("what a folder cannot say is refused by its key") {
  const auto of = [](const std::string& keys) {
    return ErrorOf("{\"model_type\": \"llama\", " + keys + "}");
  };
  CHECK(of("\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}") ==
        "rope_scaling.type: expected \"default\", \"linear\" or \"llama3\"; \"yarn\" is not "
        "supported yet");
  CHECK(of("\"rope_scaling\": {\"type\": \"linear\"}") ==
        "rope_scaling.factor: expected a number, found none");
  CHECK(of("\"mlp_bias\": true") == "mlp_bias: biases inside the MLP are not supported yet");
  CHECK(of("\"hidden_act\": \"gelu\"") == "hidden_act: expected \"silu\", got \"gelu\"");
  CHECK(of("\"hidden_size\": \"big\"") ==
        "hidden_size: expected a whole number, got \"\\\"big\\\"\"");
  CHECK(of("\"hidden_size\": 1, \"hidden_size\": 2") ==
        "the file has the key \"hidden_size\" twice");
  CHECK_THAT(
      ErrorOf("{\"model_type\": \"bert\"}"),
      Catch::StartsWith("model_type: expected \"llama\"") || Catch::Contains(", got \"bert\""));
  CHECK_THAT(ErrorOf("{}"), Catch::EndsWith("found none"));
  CHECK_THAT(ErrorOf("nonsense"), Catch::Contains("does not begin with '{'"));
  CHECK(ErrorOf("{\"model_type\": \"siglip\"}") == "vision_config: expected an object, found none");
}

TEST_CASE("a siglip in LLaVA keeps all of its rows") {
  const std::string begin =
      "{\"model_type\": \"llava\", \"text_config\": {}, \"vision_config\": {\"model_type\": "
      "\"siglip_vision_model\"}";
  CHECK(As<SiglipConfig>(Read(begin + ", \"vision_feature_select_strategy\": \"full\"}", &kSiglip))
            .feature_layer == -2);
  CHECK_THAT(ErrorOf(begin + "}", &kSiglip),
             Catch::StartsWith("vision_feature_select_strategy: expected \"full\""));
}

TEST_CASE("tensors are found under every prefix") {
  for (const char* const prefix : {"vision_model.", "", "vision_tower.vision_model.",
                                   "model.vision_tower.vision_model.", "vision_tower."}) {
    const std::string probe = std::string(prefix) + "embeddings.patch_embedding.weight";
    const ForeignNames* const names =
        FindNames(kVit, [&](const std::string& name) { return name == probe; });
    REQUIRE(names != nullptr);
    CHECK(NameIn(*names, "post_layernorm.bias") == std::string(prefix) + "post_layernorm.bias");
  }
  struct Place {
    const char* body;
    const char* head;
  };
  for (const auto& [body, head] :
       {Place{"model.", ""}, Place{"language_model.model.", "language_model."},
        Place{"model.language_model.", ""}}) {
    const ForeignNames* const names = FindNames(kLlama, [&](const std::string& name) {
      return name == std::string(body) + "embed_tokens.weight";
    });
    REQUIRE(names != nullptr);
    CHECK(NameIn(*names, "norm.weight") == std::string(body) + "norm.weight");
    CHECK(NameIn(*names, "lm_head.weight") == std::string(head) + "lm_head.weight");
  }
  CHECK(FindNames(kLlama, [](const std::string&) { return false; }) == nullptr);
}

}  // namespace
}  // namespace troupe
