// Where a relative path starts, and what the resolved text makes of it.
#include "configs/paths.hpp"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "configs/loader.hpp"

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// A folder with configurations in it; while it lives the working directory is its `work`.
class Elsewhere {
 public:
  Elsewhere() : before_(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "troupe_paths_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = fs::canonical(name);
    fs::create_directories(folder_ / "work");
    fs::current_path(folder_ / "work");
  }
  ~Elsewhere() {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  /// A file that extends the base, with `text` behind that.
  std::string Write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "extends = [\""
                                  << (before_ / "tests/configs/base.toml").string() << "\"]\n"
                                  << text;
    return (folder_ / name).string();
  }
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

 private:
  fs::path before_;
  fs::path folder_;
};

std::string ErrorOf(const LoadedConfig& loaded) {
  try {
    RequireDataFiles(loaded);
  } catch (const ConfigErrors& errors) {
    return errors.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE(
    "a relative path starts at the file that states it, one of --set at the working directory") {
  const Elsewhere folder;
  const std::string path = folder.Write("sets/a/run.toml",
                                        "[data]\ntrain = \"../rows.json\"\nheld_out = \"h.json\"\n"
                                        "tokenizer = \"sentencepiece:../t.model\"\n");
  for (const std::string& spelling : {path, std::string("../sets/a/run.toml")}) {
    const Config config = LoadConfig(spelling).config;
    CHECK(config.data.train == folder / "sets/rows.json");
    CHECK(config.data.held_out == folder / "sets/a/h.json");
    CHECK(config.data.tokenizer == "sentencepiece:" + (folder / "sets/t.model"));
  }
  CHECK(LoadConfig(path, {"data.train=mine/rows.json"}).config.data.train == "mine/rows.json");
  CHECK(LoadConfig(path, {"data.train=../rows.json"}).config.data.train == folder / "rows.json");
  CHECK(LoadConfig(path, {"data.held_out="}).config.data.held_out.empty());
  // Below the working directory a path stays short.
  const std::string here = folder.Write("work/run.toml", "[data]\ntrain = \"x/rows.json\"\n");
  CHECK(LoadConfig(here).config.data.train == "x/rows.json");
  // The base states its own, wherever the file is that extends it.
  const Config inherited = LoadConfig(folder.Write("run.toml", "")).config;
  CHECK(fs::exists(inherited.data.train));
}

TEST_CASE("a resolved text means the same files in another folder") {
  const Elsewhere folder;
  const std::string path =
      folder.Write("work/run.toml", "[data]\ntrain = \"rows.json\"\n[run]\ndir = \"out\"\n");
  const LoadedConfig loaded = LoadConfig(path);
  CHECK_THAT(loaded.resolved_toml,
             Catch::Contains("train = \"" + (folder / "work/rows.json") + "\"\n") &&
                 Catch::Contains("dir = \"out\"\n"));
  std::ofstream(folder / "resolved.toml") << loaded.resolved_toml;
  CHECK(LoadConfig(folder / "resolved.toml").config == loaded.config);
}

TEST_CASE(
    "a data file that is not there is named by key, as written, and where it was looked for") {
  const Elsewhere folder;
  const std::string path = folder.Write("sets/run.toml", "[data]\ntrain = \"../rows.json\"\n");
  CHECK(ErrorOf(LoadConfig(path)) == path + ":3:9: data.train: \"../rows.json\": no such file; " +
                                         "looked for " + (folder / "rows.json"));
  CHECK(ErrorOf(LoadConfig(path, {"data.train=none.json"})) ==
        "--set data.train=none.json: data.train: \"none.json\": no such file; looked for " +
            (folder / "work/none.json"));
  const std::string long_name(300, 'x');
  CHECK_THAT(ErrorOf(LoadConfig(path, {"data.train=" + long_name})),
             Catch::EndsWith("\": cannot be read: File name too long; looked for " +
                             (folder / "work/" + long_name)));
  std::ofstream(folder / "rows.json") << "[]";
  CHECK(ErrorOf(LoadConfig(path)) == "no error");
}

TEST_CASE("a tokenizer's folder starts where it is written, and holds one of two files") {
  const Elsewhere folder;
  const std::string path = folder.Write(
      "sets/run.toml", "[data]\ntrain = \"rows.json\"\ntokenizer = \"hf:../vicuna\"\n");
  folder.Write("sets/rows.json", "[]");
  CHECK(LoadConfig(path).config.data.tokenizer == "hf:" + (folder / "vicuna"));
  CHECK(ErrorOf(LoadConfig(path)) == path +
                                         ":4:13: data.tokenizer: \"hf:../vicuna\": no such "
                                         "file; looked for " +
                                         (folder / "vicuna/tokenizer.json"));
  folder.Write("vicuna/tokenizer.model", "");
  CHECK(ErrorOf(LoadConfig(path)) == "no error");
}

}  // namespace troupe
