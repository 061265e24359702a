// Mistakes on the command line in the words of the rest of the program: what was said, what was
// expected, what may have been meant. CLI11 finds them.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace troupe {

/// Why `word` is no verb of `app`; empty when it is one, or an option.
std::string UnknownVerb(const CLI::App& app, const std::string& word);

/// The one line for what `app` has refused to parse.
std::string ArgumentError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace troupe
