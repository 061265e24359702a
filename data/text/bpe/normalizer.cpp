#include "data/text/bpe/normalizer.hpp"

#include <stdexcept>
#include <utility>

#include "data/text/bpe/steps.hpp"
#include "data/text/bpe/unicode_form.hpp"

namespace troupe::bpe {
namespace {

/// An insertion of a published file is one character.
constexpr std::size_t kMaxInserted = 1024;

std::runtime_error GrowthError() {
  return std::runtime_error("the normalizer of the tokenizer makes a text 32 times as long");
}

/// Appends `part` to `out` with all matches replaced. Returns false if there is none. Throws if `out`
/// exceeds `most_bytes`.
bool AppendReplaced(const TextPart& part, const ReplaceStep& step, std::size_t most_bytes,
                    AlignedText& out) {
  Pattern::Matches matches(step.pattern, part.text);
  std::size_t done = 0;
  bool changed = false;
  while (const std::optional<Match> match = matches.Next()) {
    if (!changed) out.Reserve(part.text.size() + part.text.size() / 2);
    changed = true;
    out.Keep(part, done, match->begin);
    out.Append(step.text, {part.BeginOf(match->begin), part.EndOf(match->end - 1)});
    done = match->end;
    if (out.size() > most_bytes) throw GrowthError();
  }
  if (changed) out.Keep(part, done, part.text.size());
  return changed;
}

bool AppendPrepended(const TextPart& part, const PrependStep& step, AlignedText& out) {
  if (part.text.empty()) return false;
  out.Reserve(step.text.size() + part.text.size());
  out.Append(step.text, {part.BeginOf(0), part.BeginOf(0)});
  out.Keep(part, 0, part.text.size());
  return true;
}

bool AppendChanged(const TextPart& part, const NormalizerStep& step, std::size_t most_bytes,
                   AlignedText& out) {
  if (const auto* form = std::get_if<UnicodeForm>(&step)) return AppendInForm(part, *form, out);
  if (const auto* prepend = std::get_if<PrependStep>(&step)) {
    return AppendPrepended(part, *prepend, out);
  }
  return AppendReplaced(part, std::get<ReplaceStep>(step), most_bytes, out);
}

}  // namespace

Pattern ReadPattern(const JsonNode& node) {
  try {
    if (const auto text = node.Find("String")) return Pattern::Literal(text->Text());
    return Pattern(node.At("Regex").Text());
  } catch (const PatternError& error) {
    node.Fail(error.what());
  }
}

const std::string& ReadInserted(const JsonNode& node) {
  if (node.Text().size() > kMaxInserted) {
    node.Fail("expected at most " + std::to_string(kMaxInserted) + " bytes, got " +
              std::to_string(node.Text().size()));
  }
  return node.Text();
}

Normalizer::Normalizer(const JsonNode& node) {
  ForEachStep(node, "normalizers", [&](const JsonNode& step, const JsonNode& type) {
    if (type.Text() == "NFC") {
      steps_.emplace_back(UnicodeForm::kNfc);
    } else if (type.Text() == "NFD") {
      steps_.emplace_back(UnicodeForm::kNfd);
    } else if (type.Text() == "NFKC") {
      steps_.emplace_back(UnicodeForm::kNfkc);
    } else if (type.Text() == "NFKD") {
      steps_.emplace_back(UnicodeForm::kNfkd);
    } else if (type.Text() == "Prepend") {
      steps_.emplace_back(PrependStep{ReadInserted(step.At("prepend"))});
    } else if (type.Text() == "Replace") {
      steps_.emplace_back(
          ReplaceStep{ReadPattern(step.At("pattern")), ReadInserted(step.At("content"))});
    } else {
      type.Refuse("Sequence, NFC, NFD, NFKC, NFKD, Prepend or Replace");
    }
  });
}

TextPart Normalizer::Apply(TextPart part, AlignedText& storage) const {
  AlignedText next;
  const std::size_t most_bytes = MostBytesOf(part.text.size());
  for (const NormalizerStep& step : steps_) {
    next.Clear();
    if (!AppendChanged(part, step, most_bytes, next)) continue;
    if (next.size() > most_bytes) throw GrowthError();
    std::swap(storage, next);
    part = storage.part();
  }
  return part;
}

}  // namespace troupe::bpe
