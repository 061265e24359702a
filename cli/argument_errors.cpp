#include "cli/argument_errors.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "configs/schema.hpp"
#include "configs/suggest.hpp"
#include "configs/toml_value.hpp"

namespace troupe {
namespace {

/// The verb on the command line, which may be nested (`data check`), with its full name.
const CLI::App* VerbOf(const CLI::App* app, std::string& words) {
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    words += (words.empty() ? "" : " ") + app->get_name();
  }
  return app;
}

/// The options of a verb ("--local"), without hidden ones.
std::vector<std::string> OptionsOf(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Returns one of `known` that begins with `word`, else the nearest.
std::string Meant(const std::string& word, const std::vector<std::string>& known) {
  const auto longer =
      std::ranges::find_if(known, [&](const auto& name) { return name.starts_with(word); });
  return longer != known.end() && word.size() > 3 ? *longer : Nearest(word, known);
}

bool IsOption(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

bool TakesSettings(const CLI::App& verb) { return verb.get_option_no_throw("--set") != nullptr; }

/// Returns the key for an option of other programs: "run.steps" for "--steps",
/// "optimizer.learning_rate" for "--lr". Empty if there is none, or several keys have the name.
std::string KeyFor(const std::string& option) {
  const std::string word = FoldedKey(option.substr(option.find_first_not_of('-')));
  std::vector<std::string> keys;
  const auto add = [&keys](std::string_view table, std::string_view key) {
    const bool plain = !table.empty() && table.find('*') == std::string_view::npos;
    if (plain && !key.empty()) keys.push_back(std::string(table) + "." + std::string(key));
  };
  for (const KeySpec& key : Keys()) {
    if (key.name == word) add(key.table, key.name);
  }
  if (keys.size() > 1) return "";
  for (const MeantKey& meant : MeantBy(word)) add(meant.table, meant.key);
  return keys.empty() ? "" : keys.front();
}

/// Returns the option with a similar name, else a --set of a key of the configuration.
std::string MeantOption(const CLI::App& verb, const std::string& word,
                        const std::vector<std::string>& words,
                        std::vector<std::string>::const_iterator option) {
  const std::string key = TakesSettings(verb) ? KeyFor(word) : "";
  if (key.empty()) return Meant(word, OptionsOf(verb));
  const auto equals = option->find('=');
  std::string value = "VALUE";
  if (equals != std::string::npos) {
    value = option->substr(equals + 1);
  } else if (option + 1 != words.end() && !IsOption(*(option + 1))) {
    value = *(option + 1);
  }
  return "--set " + key + "=" + value;
}

/// "; did you mean --set run.steps=5?" of a bare "run.steps=5".
std::string SettingHint(const CLI::App& verb, const std::string& word) {
  const auto equals = word.find('=');
  const bool setting = equals != std::string::npos && equals > 0 && TakesSettings(verb);
  return setting ? "; did you mean --set " + word + "?" : "";
}

/// Returns the message about unexpected arguments. Options come first: the word after an unknown
/// one may be its value.
std::string NotExpected(const CLI::App& verb, const std::string& name,
                        const std::vector<std::string>& words) {
  const auto option = std::ranges::find_if(words, IsOption);
  if (option == words.end()) {
    return Quoted(words.front()) + ": one argument too many" +
           (name.empty() ? "" : " for " + name) + SettingHint(verb, words.front());
  }
  const std::string word = option->substr(0, option->find('='));
  const std::string meant = MeantOption(verb, word, words, option);
  return Quoted(word) + ": unknown option" + (name.empty() ? "" : " of " + name) +
         (meant.empty() ? "" : "; did you mean " + meant + "?");
}

/// Returns the expectation of a numeric option ("a whole number from 0 on"), from the name of its
/// check; empty for other options.
std::string ExpectedNumber(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find("NONNEGATIVE") != std::string::npos) return "a whole number from 0 on";
  if (type.find("POSITIVE") != std::string::npos) return "a whole number from 1 on";
  const std::string opens = "INT in [";
  const std::size_t range = type.find(opens);
  if (range == std::string::npos) return "";
  const std::size_t from = range + opens.size();
  const std::size_t dash = type.find(" - ", from);
  return "a whole number from " + type.substr(from, dash - from) + " to " +
         type.substr(dash + 3, type.find(']', from) - dash - 3);
}

/// Returns the message about a number that is malformed or out of bounds; empty for other errors.
std::string WrongNumber(const CLI::App& verb, const std::string& error) {
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    const std::string expected = ExpectedNumber(*option);
    if (expected.empty()) continue;
    // "--local: Value 0 not in range 1 to 256", "Could not convert: --steps = 1.5"
    if (error.starts_with(name + ": ") || error.find(": " + name + " = ") != std::string::npos) {
      const auto& given = option->results();
      return name + ": expected " + expected + ", got " +
             (given.empty() ? "none" : Quoted(given.back()));
    }
  }
  return "";
}

}  // namespace

std::string UnknownVerb(const CLI::App& app, const std::string& word) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  if (word.starts_with('-') || std::ranges::find(verbs, word) != verbs.end()) return "";
  const bool inner = app.get_parent() != nullptr;
  if (!inner) verbs.emplace_back("help");
  const std::string nearest = Nearest(word, verbs);
  return Quoted(word) + ": unknown verb" + (inner ? " of " + app.get_name() : "") + "; " +
         (nearest.empty() ? "expected " + Alternatives(verbs) : "did you mean " + nearest + "?");
}

std::string ArgumentError(const CLI::App& app, const CLI::ParseError& error) {
  std::string name;
  const CLI::App* const verb = VerbOf(&app, name);
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  // A missing argument is reported before a surplus one, which it may have caused.
  if (std::ranges::any_of(words, IsOption) ||
      (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !words.empty())) {
    return NotExpected(*verb, name, words);
  }
  const std::string number = WrongNumber(*verb, error.what());
  return number.empty() ? error.what() : number;
}

}  // namespace troupe
