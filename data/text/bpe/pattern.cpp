#include "data/text/bpe/pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <array>
#include <new>
#include <pcre2.h>

#include "data/text/bpe/utf8.hpp"

namespace troupe::bpe {
namespace {

/// Published expressions take a few steps per character of a match. A file from a stranger may hold
/// one that takes exponentially many.
constexpr std::uint32_t kMaxMatchSteps = 20'000'000;
constexpr std::uint32_t kMaxHeapKib = 256 << 10U;
constexpr std::size_t kMaxPatternBytes = 16 << 10U;

std::string MessageOf(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct Pattern::Code {
  explicit Code(pcre2_code* code) : compiled(code) {}
  ~Code() { pcre2_code_free(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* compiled;
  bool jit = false;  ///< has machine code
};

Pattern::Pattern(const std::string& regex) : Pattern(regex, /*literal=*/false) {}

Pattern Pattern::Literal(const std::string& text) { return {text, /*literal=*/true}; }

Pattern::Pattern(const std::string& regex, bool literal) {
  if (regex.empty()) throw PatternError("expected an expression, got none");
  if (regex.size() > kMaxPatternBytes) {
    throw PatternError("expected at most " + std::to_string(kMaxPatternBytes) + " bytes");
  }
  int error = 0;
  PCRE2_SIZE at = 0;
  const std::uint32_t options =
      literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                                   options, &error, &at, nullptr);
  if (code == nullptr) {
    throw PatternError("at character " + std::to_string(at) + ": " + MessageOf(error));
  }
  const auto owner = std::make_shared<Code>(code);
  owner->jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  code_ = owner;
}

struct Pattern::Matches::State {
  pcre2_match_data* data = nullptr;
  pcre2_match_context* limits = nullptr;
};

void Pattern::Matches::Free::operator()(State* state) const {
  pcre2_match_data_free(state->data);
  pcre2_match_context_free(state->limits);
  delete state;
}

Pattern::Matches::Matches(const Pattern& pattern, std::string_view text)
    : pattern_(pattern), text_(text), state_(new State) {
  state_->data = pcre2_match_data_create(1, nullptr);
  state_->limits = pcre2_match_context_create(nullptr);
  if (state_->data == nullptr || state_->limits == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(state_->limits, kMaxMatchSteps);
  pcre2_set_depth_limit(state_->limits, kMaxMatchSteps);
  pcre2_set_heap_limit(state_->limits, kMaxHeapKib);
}

std::optional<Match> Pattern::Matches::Next() {
  const Code& code = *pattern_.code_;
  while (from_ <= text_.size()) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (code.jit) {
      found = pcre2_jit_match(code.compiled, subject, text_.size(), from_, 0, state_->data,
                              state_->limits);
    }
    // Machine code has a small stack; the interpreter takes memory up to its limit.
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(code.compiled, subject, text_.size(), from_,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state_->data, state_->limits);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0)
      throw PatternError("a regular expression gave up on a text: " + MessageOf(found));
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(state_->data);
    const Match match{place[0], place[1]};
    if (match.end > match.begin) {
      from_ = match.end;
      return match;
    }
    // An empty match splits nothing: look on after the next character.
    if (match.end >= text_.size()) break;
    from_ = match.end + CharacterAt(text_, match.end).bytes;
  }
  from_ = text_.size() + 1;
  return std::nullopt;
}

}  // namespace troupe::bpe
