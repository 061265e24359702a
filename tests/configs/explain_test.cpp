// What `--explain` prints of a configuration: where its values come from, which words it may have
// meant, and what has no effect.
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"
#include "configs/schema.hpp"
#include "tests/configs/base.hpp"

namespace troupe {

namespace {  /// The remarks on the example with these changes, a line each.
std::string RemarksOn(const std::vector<std::string>& overrides) {
  std::string text;
  for (const ConfigError& remark : LoadConfig(kExample, overrides).remarks) {
    text += remark.text + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("explain prints where a value was written, and that it is a default") {
  const LoadedConfig loaded = LoadConfig("configs/shapes_colocated.toml");
  CHECK(Explain(loaded, "modules.vision.layout.dp") ==
        "modules.vision.layout.dp = 8\n  configs/shapes_colocated.toml:11:17\n"
        "  overrides configs/shapes.toml:19:17, which said 4\n"
        "  Data parallel: replicas. tp*cp*pp*dp equals the number of ranks.\n");
  CHECK_THAT(Explain(loaded, "run.tf32"),
             Catch::StartsWith("run.tf32 = false\n  default\n  float32 on a GPU: whether"));
  CHECK_THAT(Explain(loaded, "edges.vision.language.credits"),
             Catch::StartsWith("edges.vision.language.credits = 4\n  configs/shapes.toml:51:11\n"));
  CHECK_THAT(Explain(loaded, "modules.language.layout"),
             Catch::Contains("modules.language.layout.tp = 4\n") &&
                 Catch::Contains("modules.language.layout.pp = 1\n  default\n"));
  CHECK_THAT(Explain(loaded, "run"), !Catch::Contains("float32 on a GPU"));
  CHECK_THROWS_WITH(Explain(loaded, "run.step"), "run.step: unknown key; did you mean run.steps?");
  CHECK_THROWS_WITH(Explain(loaded, "tf32"), "tf32: unknown key; did you mean run.tf32?");
}

TEST_CASE("explain tells of keys that are not set, and of those that cannot be") {
  const LoadedConfig loaded = LoadConfig("configs/shapes_inline.toml");
  const auto begins = [&](const std::string& key, const std::string& text) {
    CHECK_THAT(Explain(loaded, key), Catch::StartsWith(key + " is not set; " + text));
  };
  begins("modules.vision.offload_ahead",
         "default: none\n  expected a whole number (microbatches) of at least 0\n  How many ");
  begins("modules.vision.weights", "default: none\n  expected \"hf:DIR\"");
  begins("modules.vision.ranks", "the module runs inline in \"language\" and has its\n");
  begins("modules.language.image_size",
         "it is of modules of kind \"vit\", and this one's is \"llama\"\n");
  begins("modules.language.inline_in", "it is of modules of kind \"vit\"");
  begins("modules.language.optimizer.weight_decay", "default: none\n");
  CHECK_THAT(Explain(loaded, "modules.language.optimizer"),
             Catch::Contains("modules.language.optimizer.min_learning_rate is not set"));
  CHECK_THROWS_WITH(Explain(loaded, "modules.vision.offload_ahed"),
                    "modules.vision.offload_ahed: unknown key; did you mean "
                    "modules.vision.offload_ahead?");
  CHECK_THROWS_WITH(Explain(loaded, "modules.none.ranks"), Catch::Contains("unknown key"));
}

TEST_CASE("every key of the schema can be explained, set or not") {
  const LoadedConfig loaded = LoadConfig("configs/shapes_2node.toml",
                                         {"data.train=''", "data.sources=[{ path = 'a.tar' }]"});
  for (const auto& key : Keys()) {
    std::string dotted = std::string(key.table);
    const auto replace = [&](const std::string& pattern, const std::string& name) {
      if (dotted.starts_with(pattern)) dotted = name + dotted.substr(pattern.size());
    };
    replace("modules.*", "modules.vision");
    replace("edges.*.*", "edges.vision.language");
    replace("cluster.nodes.*", "cluster.nodes.n1");
    replace("data.sources.*", "data.sources.0");
    dotted += (dotted.empty() ? "" : ".") + std::string(key.name);
    INFO(dotted);
    CHECK_NOTHROW(Explain(loaded, dotted));
  }
}

TEST_CASE("words that others use for a value are answered with ours") {
  const auto with = [](const std::string& value) { return ErrorsOf(kExample, {value}); };
  for (const char* word : {"gpu", "GPU", "CUDA", "Cuda", "nvidia"}) {
    CHECK(with("cluster.backend=" + std::string(word)) ==
          "--set cluster.backend=" + std::string(word) +
              ": cluster.backend: expected \"cpu\" or \"cuda\", got \"" + std::string(word) +
              "\"; did you mean \"cuda\"?");
  }
  const auto precision = [&](const std::string& word, const std::string& hint) {
    CHECK(with("run.precision=" + word) ==
          "--set run.precision=" + word +
              ": run.precision: expected \"float32\", \"float64\" or \"bfloat16\", got \"" + word +
              "\"" + hint);
  };
  for (const char* word : {"bf16", "BF16", "BFloat16"}) {
    precision(word, "; did you mean \"bfloat16\"?");
  }
  for (const char* word : {"fp32", "float", "single"}) {
    precision(word, "; did you mean \"float32\"?");
  }
  for (const char* word : {"half", "fp16", "float16"}) {
    precision(word, ", which is not supported; the nearest is \"bfloat16\"");
  }
}

TEST_CASE("keys of other programs are answered with ours") {
  const auto answer = [](const std::string& key, const std::string& table) {
    const std::string text = ErrorsOf(kExample, {table + "." + key + "=1"});
    const auto hint = text.find("did you mean ");
    return hint == std::string::npos ? text : text.substr(hint + 13);
  };
  const std::vector<std::pair<std::string, std::string>> of_llama = {
      {"hidden_size", "hidden"},
      {"num_layers", "layers"},
      {"num_hidden_layers", "layers"},
      {"num_heads", "heads"},
      {"num_attention_heads", "heads"},
      {"num_key_value_heads", "kv_heads"},
      {"intermediate_size", "mlp_hidden"},
      {"ffn_hidden_size", "mlp_hidden"},
      {"vocab_size", "vocab"},
      {"seq_len", "context"},
      {"seq_length", "context"},
      {"max_position_embeddings", "context"},
      {"rope_theta", "rope_base"},
      {"tie_word_embeddings", "tied_head"}};
  for (const auto& [theirs, ours] : of_llama) {
    CHECK(answer(theirs, "modules.language") == "\"" + ours + "\"?");
  }
  CHECK(answer("img_size", "modules.vision") == "\"image_size\"?");
  CHECK(answer("lr", "optimizer") == "\"learning_rate\"?");
  CHECK(answer("LR", "run") == "learning_rate (in [optimizer])?");
  for (const char* clip : {"grad_clip", "clip_grad", "max_norm", "clip-grad"}) {
    CHECK(answer(clip, "optimizer") == "\"clip_norm\"?");
  }
  CHECK(answer("weight-decay", "optimizer") == "\"weight_decay\"?");
  CHECK(answer("warmup", "optimizer") == "\"warmup_steps\"?");
  CHECK(answer("tensor_parallel", "modules.language") == "tp (in [modules.NAME.layout])?");
  CHECK(answer("pipeline_model_parallel_size", "cluster") == "pp (in [modules.NAME.layout])?");
  CHECK(answer("data_parallel", "modules.language.layout") == "\"dp\"?");
  CHECK(answer("world_size", "cluster") == "\"ranks\"?");
  CHECK(answer("gradient_accumulation", "schedule") == "\"microbatches\"?");
  CHECK(answer("gradient_accumulation_steps", "optimizer") == "microbatches (in [schedule])?");
  CHECK(answer("global_batch_size", "run") == "global_batch (in [schedule])?");
  CHECK(answer("batch_size", "data") ==
        "micro_batch_size (in [schedule]) or global_batch (in [schedule])?");
  CHECK(answer("val", "data") == "\"held_out\"?");
  CHECK(answer("train_data", "data") == "\"train\"?");
  CHECK(answer("num_train_epochs", "run") == "\"epochs\"?");
  CHECK(answer("warmup_fraction", "optimizer") == "\"warmup_ratio\"?");
  CHECK(answer("group_by_modality_length", "data") == "\"group_by\"?");
  CHECK(answer("adam_beta2", "run") ==
        "betas (in [optimizer])? it holds both: betas = [BETA1, BETA2]");
  CHECK(answer("minutes", "checkpoint") == "\"every_minutes\"?");
  CHECK(answer("kind", "model.language") == "[modules.NAME]?");
}

TEST_CASE("betas in a string are answered with the list to write") {
  const auto answer = [](const std::string& value) {
    const std::string text = ErrorsOf(kExample, {"optimizer.betas=" + value});
    return text.substr(text.rfind("; "));
  };
  CHECK(answer("0.9,0.999") == "; write [0.9, 0.999]");
  CHECK(answer("'(.9 0.95)'") == "; write [0.9, 0.95]");
  for (const char* vague : {"0.9", "0.9,1.5", "beta1=0.9,beta2=0.95", "inf,nan", "adam"}) {
    CHECK(answer(vague) == "; write a list such as [0.9, 0.95]");
  }
}

TEST_CASE("tf32 is remarked on where no product is rounded by it") {
  const auto remarks = [](std::vector<std::string> overrides) {
    std::string text;
    overrides.push_back("run.tf32=true");
    for (const ConfigError& remark : LoadConfig(kExample, overrides).remarks)
      text += ToString(remark);
    return text;
  };
  CHECK(remarks({}) ==
        "--set run.tf32=true: run.tf32: has no effect with cluster.backend = \"cpu\": it is "
        "about products of float32 on a GPU");
  CHECK(remarks({"cluster.backend=cuda", "run.precision=bfloat16"}) ==
        "--set run.tf32=true: run.tf32: has no effect with run.precision = \"bfloat16\": it is "
        "about products "
        "of float32");
  CHECK_THAT(remarks({"cluster.backend=cuda", "run.precision=float64"}),
             Catch::Contains("\"float64\""));
  CHECK(remarks({"cluster.backend=cuda"}).empty());
  CHECK(LoadConfig(kExample).remarks.empty());
}

TEST_CASE("settings of packs, cp, experts and backwards that are not there are remarks") {
  CHECK(RemarksOn({"data.pack_window=9"}) ==
        "data.pack_window: has no effect without data.packing = true\n");
  CHECK(RemarksOn({"schedule.context_exchange=gather"}) ==
        "schedule.context_exchange: has no effect: no module has a cp above 1\n");
  CHECK(RemarksOn({"modules.language.moe.z_coefficient=1e-3"}) ==
        "modules.language.moe.z_coefficient: has no effect: \"language\" has no experts\n");
  const std::string frozen = "modules.vision.frozen=true";
  CHECK(RemarksOn({frozen, "modules.vision.recompute=full"}) ==
        "modules.vision.recompute: has no effect: nothing of \"vision\" trains\n");
  CHECK(RemarksOn({frozen, "modules.vision.offload_activations=auto"}) ==
        "modules.vision.offload_activations: has no effect: nothing of \"vision\" trains\n");
  // These have an effect, or are as they would be.
  CHECK(RemarksOn({frozen, "modules.vision.recompute=none", "data.pack_window=4096"}) == "");
  CHECK(RemarksOn({"modules.vision.recompute=full", "modules.vision.offload_activations=auto"}) ==
        "");
}

TEST_CASE("what only colocated encoders obey is a remark elsewhere, never an error") {
  const std::string nothing =
      "modules.vision.offload_ahead: has no effect: nothing of \"vision\" "
      "leaves its ranks\n";
  CHECK(RemarksOn({"schedule.window=step"}) == "");
  CHECK(RemarksOn({"schedule.window=9999"}) ==
        "schedule.window: has no effect: no encoder shares its ranks with a module it feeds\n");
  CHECK(RemarksOn({"modules.vision.offload=state", "modules.vision.offload_ahead=1"}) ==
        "modules.vision.offload: has no effect: \"vision\" shares no ranks with \"language\", "
        "which it feeds\n" +
            nothing);
  CHECK(RemarksOn({"modules.vision.offload_ahead=1"}) == nothing);
  CHECK(RemarksOn({"modules.language.offload=state"}) ==
        "modules.language.offload: has no effect: \"language\" feeds no module\n");
  const std::vector<std::string> all = {"schedule.window=1", "modules.vision.offload=state",
                                        "modules.vision.offload_ahead=1"};
  CHECK(LoadConfig("configs/shapes_colocated.toml", all).remarks.empty());
}

}  // namespace troupe
