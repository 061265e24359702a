// A folder for one test: a small data set of its own, and runs made from it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/process.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {

/// One LLaVA row about `image` with one question; `id` in quotes of its own.
inline std::string RowText(const std::string& image, const std::string& question = "<image>What?") {
  return R"({"id": "a", "image": ")" + image +
         R"(", "conversations": [{"from": "human", "value": ")" + question +
         R"("}, {"from": "gpt", "value": "a red circle"}]})";
}

class RunFolder {
 public:
  /// The data set is one row about one good image.
  RunFolder() {
    std::filesystem::create_directory(folder_ / "images");
    std::filesystem::copy("data/shapes/images/train_0000.png", folder_ / "images/good.png");
    WriteRows("[" + RowText("images/good.png") + "]");
  }

  /// Replaces train.json.
  void WriteRows(const std::string& json) const { folder_.Write("train.json", json); }
  void WriteImage(const std::string& name, const std::string& bytes) const {
    folder_.Write("images/" + name, bytes);
    WriteRows("[" + RowText("images/" + name) + "]");
  }

  /// CONFIG with settings that make it end within a second, then `settings`, as KEY=VALUE.
  std::vector<std::string> Arguments(const std::string& verb, const std::string& config,
                                     const std::vector<std::string>& settings = {}) const {
    std::vector<std::string> arguments = {verb, config};
    const auto set = [&](const std::string& setting) {
      arguments.insert(arguments.end(), {"--set", setting});
    };
    for (const char* quick : {"run.steps=3", "run.evaluate_every=0", "schedule.micro_batch_size=4",
                              "schedule.microbatches=2", "data.held_out=''"}) {
      set(quick);
    }
    set("run.dir=" + (folder_ / "runs"));
    set("data.train=" + (folder_ / "train.json"));
    for (const std::string& setting : settings) set(setting);
    return arguments;
  }

  /// `troupe train configs/shapes.toml`, made small.
  Outcome Train(const std::vector<std::string>& settings = {},
                const ProcessOptions& options = {}) const {
    return RunTroupe(Arguments("train", "configs/shapes.toml", settings), options);
  }

  /// The run directories made so far, by name.
  std::vector<std::string> Runs() const {
    std::vector<std::string> runs;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "runs", none)) {
      if (!entry.is_symlink()) runs.push_back(entry.path().string());  // not runs/latest
    }
    return runs;
  }

  const std::string& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  ScratchFolder folder_;
};

}  // namespace troupe
