// Messages about mistakes on the command line that CLI11 finds: the argument, the expectation, and
// a suggestion.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class ParseError;
}  // namespace CLI

namespace troupe {

/// Returns why `word` is not a verb of `app`; empty if it is a verb or an option.
std::string UnknownVerb(const CLI::App& app, const std::string& word);

/// Returns one line about an error of CLI11.
std::string ArgumentError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace troupe
