// A regular expression of a tokenizer, compiled by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe::bpe {

/// Bytes [begin, end) of a text.
struct Match {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// An expression that PCRE2 does not compile, or one that takes too long on a text.
class PatternError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Immutable, hence thread-safe.
class Pattern {
 public:
  /// Throws PatternError, "at character 7: missing closing parenthesis", if `regex` is not a regular
  /// expression.
  explicit Pattern(const std::string& regex);
  /// Matches `text` literally.
  static Pattern Literal(const std::string& text);

  /// Finds the matches in a text, in order, as the iterators of other libraries do.
  class Matches {
   public:
    /// `text` is UTF-8 and outlives this.
    Matches(const Pattern& pattern, std::string_view text);
    /// Returns the next match. Throws PatternError if it would take more steps than any published
    /// expression needs.
    std::optional<Match> Next();

   private:
    struct State;
    struct Free {
      void operator()(State* state) const;
    };
    const Pattern& pattern_;
    std::string_view text_;
    std::size_t from_ = 0;
    std::unique_ptr<State, Free> state_;
  };

 private:
  struct Code;
  Pattern(const std::string& regex, bool literal);
  std::shared_ptr<const Code> code_;
};

}  // namespace troupe::bpe
