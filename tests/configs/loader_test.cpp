#include "configs/loader.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <catch2/catch.hpp>

#include "configs/checks.hpp"
#include "kinds/llama.hpp"
#include "kinds/vit.hpp"
#include "tests/configs/base.hpp"

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// A separate folder for files a test writes.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fs::path("troupe_configs_XXXXXX")) {
    std::string name = path_.string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string Write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  fs::path path_;
};

// The contract of the keys, as users were first shown it.
const ModuleConfig& Module(const LoadedConfig& loaded, const std::string& name) {
  const ModuleConfig* module = loaded.config.Find(name);
  REQUIRE(module != nullptr);
  return *module;
}

}  // namespace

TEST_CASE("every file in configs/ loads, and its resolved text loads to the same values") {
  const Folder folder;
  int files = 0;
  for (const auto& entry : fs::directory_iterator("configs")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    INFO(entry.path());
    CHECK(ErrorsOf(entry.path().string(), {}) == "no error");
    const LoadedConfig loaded = LoadConfig(entry.path().string());
    CHECK(loaded.config.run.name == entry.path().stem().string());
    const LoadedConfig again = LoadConfig(folder.Write("resolved.toml", loaded.resolved_toml));
    CHECK(again.resolved_toml == loaded.resolved_toml);
    CHECK(again.config == loaded.config);
  }
  CHECK(files >= 11);
}

TEST_CASE("every value of the example arrives in its field") {
  const LoadedConfig loaded = LoadConfig(kExample);
  const Config& config = loaded.config;
  CHECK(config.run.name == "shapes");
  CHECK(config.run.steps == 150);
  CHECK(config.run.seed == 7);
  CHECK(config.cluster.ranks == 8);
  REQUIRE(config.modules.size() == 2);
  CHECK(config.modules[0].name == "vision");
  CHECK(config.modules[0].ranks == std::vector{4, 5, 6, 7});
  CHECK(config.modules[0].layout == Layout{.dp = 4});
  CHECK(config.modules[0].As<VitConfig>().feature_layer == -2);
  CHECK(config.modules[0].As<VitConfig>().built_layers() == 3);
  CHECK(config.modules[0].As<VitConfig>().mlp_hidden == 256);
  CHECK(config.modules[0].input->placeholder == "<image>");
  CHECK(config.modules[0].optimizer.learning_rate == 1e-3);
  CHECK_FALSE(config.modules[0].optimizer.weight_decay);
  CHECK(config.modules[1].layout == Layout{.tp = 2, .pp = 2});
  CHECK(config.modules[1].As<LlamaConfig>().kv_heads == 2);
  CHECK(config.modules[1].As<LlamaConfig>().mlp_hidden == 192);
  CHECK(config.modules[1].layers_per_stage.empty());
  REQUIRE(config.edges.size() == 1);
  CHECK(config.edges[0].through->hidden == 128);
  CHECK(config.edges[0].through->on == ProjectorEnd::kFrom);
  CHECK(config.schedule.window == 0);
  CHECK(config.optimizer.beta1 == 0.9);
  CHECK(config.optimizer.beta2 == 0.95);
  CHECK(config.global_batch() == 8);
  CHECK(PlacementOfEdge(config, config.edges[0]) == Placement::kDisjoint);
}

TEST_CASE("modules keep the order of the file, not of the alphabet") {
  const LoadedConfig loaded = LoadConfig("configs/shapes_two_encoders.toml");
  REQUIRE(loaded.config.modules.size() == 3);
  CHECK(loaded.config.modules[0].name == "vision");
  CHECK(loaded.config.modules[1].name == "language");
  CHECK(loaded.config.modules[2].name == "detail");
  CHECK(loaded.config.Sink().name == "language");
}

TEST_CASE("the variants have the placements their names promise") {
  const auto placement = [](const std::string& path, std::size_t edge) {
    const Config config = LoadConfig(path).config;
    return PlacementOfEdge(config, config.edges.at(edge));
  };
  CHECK(placement("configs/shapes_colocated.toml", 0) == Placement::kColocated);
  CHECK(placement("configs/shapes_inline.toml", 0) == Placement::kInline);
  CHECK(placement("configs/shapes_mixed.toml", 0) == Placement::kColocated);
  CHECK(placement("configs/shapes_mixed.toml", 1) == Placement::kDisjoint);
  CHECK(placement("configs/shapes_two_encoders.toml", 0) == Placement::kDisjoint);
  CHECK(Module(LoadConfig("configs/shapes_frozen.toml"), "vision").frozen);
  REQUIRE(LoadConfig("configs/shapes_2node.toml").config.cluster.nodes.size() == 2);
}

TEST_CASE("an inline module takes its host's grid and drops inherited ranks and layout") {
  const LoadedConfig loaded = LoadConfig("configs/shapes_inline.toml");
  const ModuleConfig& vision = Module(loaded, "vision");
  CHECK(vision.ranks.empty());
  CHECK(vision.layout == Layout{});
  CHECK(GridOf(loaded.config, vision).ranks() == std::vector{0, 1, 2, 3});
  CHECK(GridOf(loaded.config, vision).layout() == Layout{.tp = 2, .pp = 2});
}

TEST_CASE("ranks given over an inherited inline_in place the module again") {
  const LoadedConfig loaded =
      LoadConfig("configs/shapes_inline.toml",
                 {"cluster.ranks=6", "modules.vision.ranks=5,4", "modules.vision.layout.dp=2"});
  CHECK_FALSE(Module(loaded, "vision").inline_in);
  CHECK(Module(loaded, "vision").ranks == std::vector{5, 4});
  // Without ranks a layout leaves the module inline.
  CHECK_THROWS_WITH(LoadConfig("configs/shapes_inline.toml", {"modules.vision.layout.tp=2"}),
                    Catch::Contains("modules.vision.inline_in: given together with "
                                    "modules.vision.layout, expected one of the two"));
}

TEST_CASE("a layout in braces replaces the inherited one, a dotted key changes one size") {
  CHECK(Module(LoadConfig("configs/shapes_colocated.toml"), "language").layout ==
        Layout{.tp = 4, .dp = 2});
  const LoadedConfig dotted =
      LoadConfig(kExample, {"modules.language.layout.tp=1", "modules.language.layout.dp=2"});
  CHECK(Module(dotted, "language").layout == Layout{.pp = 2, .dp = 2});
}

TEST_CASE("files apply in the order of extends, and the file itself last") {
  const Folder folder;
  const std::string base = fs::absolute(kExample).string();
  folder.Write("a.toml", "[run]\nsteps = 1\nseed = 1\nname = \"a\"\n");
  folder.Write("sub/b.toml", "[run]\nsteps = 2\nseed = 2\n");
  const auto path = folder.Write("top.toml", "extends = [\"" + base +
                                                 "\", \"a.toml\", \"sub/b.toml\"]\n"
                                                 "[run]\nsteps = 3\n");
  const LoadedConfig loaded = LoadConfig(path);
  CHECK(loaded.config.run.steps == 3);
  CHECK(loaded.config.run.seed == 2);
  CHECK(loaded.config.run.name == "a");
  CHECK(Explain(loaded, "run.steps") == "run.steps = 3\n  " + path + ":3:9\n  overrides " +
                                            (fs::path(path).parent_path() / "sub/b.toml").string() +
                                            ":2:9, which said 2\n" + "  overrides " +
                                            (fs::path(path).parent_path() / "a.toml").string() +
                                            ":2:9, which said 1\n  overrides " + base +
                                            ":11:9, which said 150\n  Optimizer updates.\n");
}

TEST_CASE("edges merge by their two ends, lists replace") {
  const Folder folder;
  const std::string base = fs::absolute(kExample).string();
  const auto path = folder.Write(
      "top.toml", "extends = [\"" + base +
                      "\"]\n[optimizer]\nbetas = [0.5, 0.25]\n[[edges]]\nfrom = \"vision\"\n"
                      "to = \"language\"\nthrough.frozen = true\n");
  const Config config = LoadConfig(path).config;
  REQUIRE(config.edges.size() == 1);
  CHECK(config.edges[0].through->frozen);
  CHECK(config.edges[0].through->hidden == 128);
  CHECK(config.optimizer.beta1 == 0.5);
  CHECK(config.optimizer.beta2 == 0.25);
}

TEST_CASE("--set takes TOML values, bare words, numbers as words, and edges by their ends") {
  const LoadedConfig loaded = LoadConfig(
      kExample, {"run.steps=12", "run.name=two-words", "run.dir = 2026", "run.precision=float64",
                 "modules.vision.ranks=[7, 6, 5, 4]", "modules.language.ranks=0-2,3",
                 "modules.language.layers_per_stage=[1, 3]", "schedule.window=2",
                 "edges.vision.language.credits=9", "data.train=data/x=y.json",
                 "edges.vision.language.through.on=to", "optimizer.weight_decay=1",
                 "modules.vision.axis_order=['pp', 'dp', 'cp', 'tp']"});
  const Config& config = loaded.config;
  CHECK(config.run.steps == 12);
  CHECK(config.run.name == "two-words");
  CHECK(config.run.dir == "2026");
  CHECK(config.run.precision == Precision::kFloat64);
  CHECK(config.modules[0].ranks == std::vector{7, 6, 5, 4});
  CHECK(config.modules[0].axis_order.front() == Axis::kPipeline);
  CHECK(config.modules[1].ranks == std::vector{0, 1, 2, 3});
  CHECK(config.modules[1].layers_per_stage == std::vector<std::int64_t>{1, 3});
  CHECK(config.schedule.window == 2);
  CHECK(config.edges[0].credits == 9);
  CHECK(config.edges[0].through->on == ProjectorEnd::kTo);
  CHECK(config.data.train == "data/x=y.json");
  CHECK(config.optimizer.weight_decay == 1.0);
  CHECK(Explain(loaded, "run.steps") ==
        "run.steps = 12\n  --set run.steps=12\n  overrides tests/configs/example.toml:11:9, which "
        "said "
        "150\n  Optimizer updates.\n");
}

TEST_CASE("a whole number may be written with a point or an exponent") {
  const LoadedConfig loaded = LoadConfig(
      kExample, {"run.steps=1e4", "run.seed=9007199254740992.0", "optimizer.warmup_steps=-0.0",
                 "schedule.window=2.0", "modules.language.layers_per_stage=[1.0, 3e0]"});
  const Config& config = loaded.config;
  CHECK(config.run.steps == 10000);
  CHECK(config.run.seed == 9007199254740992);
  CHECK(config.schedule.window == 2);
  CHECK_THAT(loaded.resolved_toml, Catch::Contains("\nsteps = 10000\n") &&
                                       Catch::Contains("\nseed = 9007199254740992\n") &&
                                       Catch::Contains("\nwarmup_steps = 0\n") &&
                                       Catch::Contains("\nwindow = 2\n") &&
                                       Catch::Contains("\nlayers_per_stage = [1, 3]\n"));
  const std::string expected = "run.seed: expected a whole number of at least 0, got ";
  CHECK(ErrorsOf(kExample, {"run.seed=1.5"}) == "--set run.seed=1.5: " + expected + "1.5");
  CHECK(ErrorsOf(kExample, {"run.seed=2e16"}) == "--set run.seed=2e16: " + expected + "2e+16");
  CHECK(ErrorsOf(kExample, {"run.seed=inf"}) == "--set run.seed=inf: " + expected + "inf");
}

TEST_CASE("a wrong --set is reported with the argument itself") {
  const auto with = [](const std::string& text) { return ErrorsOf(kExample, {text}); };
  CHECK(with("run.steps=ten") ==
        "--set run.steps=ten: run.steps: expected a whole number (steps) of at least 1, got the "
        "string \"ten\"");
  CHECK(with("run.stpes=3") ==
        "--set run.stpes=3: run.stpes: unknown key; did you mean \"steps\"?");
  CHECK(with("run.stpes=ten") ==
        "--set run.stpes=ten: run.stpes: unknown key; did you mean \"steps\"?");
  CHECK(with("run.steps") == "--set run.steps: expected KEY=VALUE on one line");
  CHECK(with("run.steps=1\nrun.seed=2") ==
        "--set \"run.steps=1\\nrun.seed=2\": expected KEY=VALUE on one line");
  CHECK(with("extends=[]") == "--set extends=[]: expected extends in a file only");
  CHECK(with("edges.vision.credits=2") ==
        "--set edges.vision.credits=2: expected edges.FROM.TO.KEY=VALUE");
  CHECK(with("edges.vison.language.credits=2") ==
        "--set edges.vison.language.credits=2: edges.vison.language.from: unknown module "
        "\"vison\"; did you mean \"vision\"?");
  CHECK(with("run.steps=[1") ==
        "--set run.steps=[1: run.steps: not valid TOML: in the array: encountered end-of-file; "
        "expected key = value, words in quotes");
}

TEST_CASE("in a bare value of --set a # and a quote stand for themselves") {
  const auto dir = [](const std::string& value) {
    return LoadConfig(kExample, {"run.dir=" + value}).config.run.dir;
  };
  CHECK(dir("it's") == "it's");
  CHECK(dir("a#1") == "a#1");
  CHECK(dir("7#1") == "7#1");
  CHECK(dir(" 7 # 1 ") == "7 # 1");
  CHECK(dir("5\"-disk") == "5\"-disk");
  CHECK(dir("a[1]") == "a[1]");
  CHECK(dir("\"it's\"") == "it's");
  CHECK(dir("'a' # a comment") == "a");
  CHECK(LoadConfig(kExample, {"data.train=data/my#1.json"}).config.data.train == "data/my#1.json");
  CHECK(LoadConfig(kExample, {"modules.vision.ranks=[7, 6, 5, 4] # reversed"})
            .config.modules[0]
            .ranks == std::vector{7, 6, 5, 4});
  const auto with = [](const std::string& text) { return ErrorsOf(kExample, {text}); };
  CHECK(with("run.steps=12#3") ==
        "--set run.steps=12#3: run.steps: expected a whole number (steps) of at least 1, got the "
        "string \"12#3\"");
  CHECK(with("run.name=it's") ==
        "--set run.name=it's: run.name: expected letters, digits, _, - and . (not first), got "
        "\"it's\"");
  CHECK(with("run.name='tis") ==
        "--set run.name='tis: run.name: expected the quote ' to close at the end of the value; "
        "leave it out, or put \" around all of the value");
  CHECK(with("#run.steps=3") == "--set #run.steps=3: expected KEY=VALUE on one line");
}

TEST_CASE("a --set without a value is the empty string") {
  CHECK(LoadConfig(kExample, {"data.held_out="}).config.data.held_out.empty());
  CHECK(ErrorsOf(kExample, {"run.steps="}) ==
        "--set run.steps=: run.steps: expected a whole number (steps) of at least 1, got the "
        "string \"\"");
}

TEST_CASE("the last --set wins") {
  CHECK(LoadConfig(kExample, {"run.steps=5", "run.steps=6"}).config.run.steps == 6);
}

TEST_CASE("a file that cannot be read is named") {
  CHECK(ErrorsOf("configs/nope.toml", {}) == "configs/nope.toml: no such file");
  CHECK(ErrorsOf("configs", {}) == "configs: expected a file, got a directory");
  CHECK(ErrorsOf("/dev/zero", {}) == "/dev/zero: expected a regular file");
}

TEST_CASE("more modules or layers than any model has are refused before they are looked at") {
  std::string text = "schema = 1\n[cluster]\nranks = 1\n";
  for (int i = 0; i < 20'000; ++i) text += "[modules.m" + std::to_string(i) + "]\nkind = \"vit\"\n";
  const Folder folder;
  CHECK_THAT(ErrorsOf(folder.Write("many.toml", text), {}),
             Catch::Contains("expected at most 1024 modules, got 20000"));
  CHECK_THAT(ErrorsOf(kExample, {"modules.language.layers=1000000000"}),
             Catch::Contains("modules.language.layers: ") && Catch::Contains("10000"));
}

TEST_CASE("files may lie eight deep and no deeper") {
  const Folder folder;
  std::string below = fs::absolute(kExample).string();
  std::string path;
  for (int depth = 1; depth <= 8; ++depth) {
    path = folder.Write(std::to_string(depth) + ".toml", "extends = [\"" + below + "\"]\n");
    below = path;
  }
  CHECK(ErrorsOf(path, {}) == "no error");
  path = folder.Write("9.toml", "extends = [\"" + below + "\"]\n");
  CHECK_THAT(ErrorsOf(path, {}),
             Catch::EndsWith("extends: expected at most 8 files one above the other, got more"));
}

TEST_CASE("strings of every kind survive the resolved text") {
  const Folder folder;
  const std::string base = fs::absolute(kExample).string();
  const auto path = folder.Write("top.toml", "extends = [\"" + base +
                                                 "\"]\n[run]\ndir = "
                                                 "\"a \\\"b\\\" \\\\ \\t \\n \\u0001 \\u00e9\"\n");
  const LoadedConfig loaded = LoadConfig(path);
  CHECK(loaded.config.run.dir == "a \"b\" \\ \t \n \x01 \xc3\xa9");
  CHECK(LoadConfig(folder.Write("r.toml", loaded.resolved_toml)).config == loaded.config);
}

TEST_CASE("every value that a module has over another table survives the resolved text") {
  const Folder folder;
  for (const std::string value : {"shard=\"none\"", "instances=1", "weight_decay=0.5"}) {
    const LoadedConfig loaded = LoadConfig(
        "configs/shapes.toml", {"optimizer.shard=data", "modules.language.optimizer." + value});
    INFO(loaded.resolved_toml);
    CHECK(LoadConfig(folder.Write("r.toml", loaded.resolved_toml)).config == loaded.config);
  }
}

TEST_CASE("all mistakes are reported at once, sorted by place") {
  const auto errors =
      ErrorsOf(kExample, {"run.steps=0", "run.seed=-1", "modules.vision.heads=true"});
  CHECK(errors ==
        "--set modules.vision.heads=true: modules.vision.heads: expected a whole number of at "
        "least 1, got true\n"
        "--set run.seed=-1: run.seed: expected a whole number of at least 0, got -1\n"
        "--set run.steps=0: run.steps: expected a whole number (steps) of at least 1, got 0");
}

TEST_CASE("an error about a divisor names those that there are, or the nearest") {
  CHECK(DivisorHint("modules.lm.layout.tp", 4, 3) == "; tp can be 1, 2 or 4");
  CHECK(DivisorHint("modules.lm.layout.pp", 7, 2) == "; pp can be 1 or 7");
  CHECK(DivisorHint("modules.lm.heads", 4096, 48) == "; the nearest are 32 and 64");
  CHECK(DivisorHint("modules.lm.heads", 4096, 5000) == "; the nearest is 4096");
}

TEST_CASE("a misfit is blamed on the key that was written later") {
  CHECK(ErrorsOf(kExample, {"modules.vision.patch_size=5"}) ==
        "--set modules.vision.patch_size=5: modules.vision.patch_size: expected a divisor of "
        "modules.vision.image_size = 32, got 5; patch_size can be 1, 2, 4, 8, 16 or 32");
  CHECK(ErrorsOf(kExample, {"modules.vision.image_size=36"}) ==
        "--set modules.vision.image_size=36: modules.vision.image_size: expected a multiple of "
        "modules.vision.patch_size = 8, got 36");
  CHECK(ErrorsOf(kExample, {"modules.vision.ranks=4-8", "cluster.ranks=9"}) ==
        "--set modules.vision.ranks=4-8: modules.vision.ranks: \"4-8\" are 5 ranks, but the layout "
        "dp 4 needs 4");
}

TEST_CASE("a damaged file is loaded or refused with messages, whatever the damage") {
  const Folder folder;
  std::ifstream file(kExample);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string letters = "=[]{}\"'.,#\n\\ 019-_ae\xff\x01*";
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = text;
    for (int edit = 0; edit < 1 + round % 3; ++edit) {
      const std::size_t at = random() % damaged.size();
      const std::size_t length = random() % 2 == 0 ? 1 : random() % 40;
      const std::string with(random() % 3, letters[random() % letters.size()]);
      damaged.replace(at, length, with);
    }
    // A different name each: file systems flush a file that is written over.
    const std::string name = "damaged" + std::to_string(round) + ".toml";
    const std::string errors = ErrorsOf(folder.Write(name, damaged), {});
    refused += errors != "no error";
  }
  CHECK(refused > 300);
}

}  // namespace troupe
