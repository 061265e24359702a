#include "cli/commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/member.hpp"
#include "configs/toml_value.hpp"
#include "layout/text.hpp"

namespace troupe {

void SetCommand(CLI::App& verb, Command& command, Command action) {
  verb.callback([&command, action = std::move(action)] { command = action; });
}

void AddConfigArguments(CLI::App& app, ConfigArguments& arguments, bool required) {
  app.add_option("CONFIG", arguments.path, "the TOML file; docs/config.md describes every key")
      ->required(required);
  app.add_option("--set", arguments.overrides,
                 "a value on top of the file, as KEY=VALUE; may be repeated\n"
                 "(--set run.steps=20 --set modules.language.layout.tp=1)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void AddRunOverrides(CLI::App& verb, std::vector<std::string>& overrides) {
  verb.add_option(
          "--set", overrides,
          "a value on top of the run's configuration, as KEY=VALUE; may be repeated: where\n"
          "a folder is now (--set modules.language.weights=hf:DIR)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void AddChoice(CLI::App& verb, const std::string& name, const std::vector<std::string>& choices,
               std::string& chosen, const std::string& about) {
  const std::string words = ListedWithOr(choices);
  const auto check = [=](const std::string& word) {
    return std::ranges::find(choices, word) != choices.end()
               ? std::string()
               : "expected " + words + ", got " + Quoted(word);
  };
  verb.add_option(name, chosen,
                  (about.empty() ? "" : about + ": ") + words +
                      (chosen.empty() ? "" : " (default: " + chosen + ")"))
      ->check(CLI::Validator(check, ""))
      ->type_name("");
}

std::string WhyNoFolder(const std::string& path) {
  std::error_code unknown;
  const auto there = std::filesystem::status(path, unknown);
  const bool other = std::filesystem::exists(there) && !std::filesystem::is_directory(there);
  if (!path.empty() && !other) return "";
  return "expected a folder, got " + std::string(other ? "the file " : "") + Quoted(path);
}

std::string WhyNoFile(const std::string& path) {
  std::error_code unknown;
  const bool folder = std::filesystem::is_directory(path, unknown);
  if (!path.empty() && !folder) return "";
  return "expected a file, got " + std::string(folder ? "the folder " : "") + Quoted(path);
}

void AddMemberArguments(CLI::App& verb, MemberArguments& arguments) {
  verb.add_option("--address", arguments.address,
                  "this node's own address, where others reach it (default: the one it reaches\n"
                  "node 0 from)")
      ->type_name("HOST");
  verb.add_option("--key-file", arguments.key_file,
                  "the run key, the same on every node (or TROUPE_KEY_FILE); see `troupe key`")
      ->type_name("FILE");
  // Hidden: passed by a launcher.
  verb.add_option("--child", arguments.launcher)->group("");
  verb.add_option("--key-descriptor", arguments.key_descriptor)->group("");
  verb.add_option("--config-descriptor", arguments.config_descriptor)->group("");
  verb.add_option("--local-processes", arguments.local_processes)->group("");
}

}  // namespace troupe
