#include "data/text/bpe/pre_tokenizer.hpp"

#include "data/text/bpe/normalizer.hpp"
#include "data/text/bpe/steps.hpp"
#include "data/text/bpe/utf8.hpp"

namespace troupe::bpe {
namespace {

/// The expression of ByteLevel, which GPT-2 introduced.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Passes the parts of a split to `sink`.
template <class Sink>
void ForEachPiece(const SplitStep& step, const TextPart& part, Sink sink) {
  Pattern::Matches matches(step.pattern, part.text);
  std::size_t done = 0;
  while (const std::optional<Match> match = matches.Next()) {
    if (step.keeps_rest && match->begin > done) sink(part.Sub(done, match->begin));
    if (step.keeps_matches) sink(part.Sub(match->begin, match->end));
    done = match->end;
  }
  if (step.keeps_rest && done < part.text.size()) sink(part.Sub(done, part.text.size()));
}

/// Passes parts that begin with a mark, save perhaps the first, to `sink`.
template <class Sink>
void ForEachMarked(const std::string& mark, const TextPart& part, Sink sink) {
  std::size_t begin = 0;
  while (begin < part.text.size()) {
    const std::size_t next = part.text.find(mark, begin + 1);
    const std::size_t end = next == std::string_view::npos ? part.text.size() : next;
    sink(part.Sub(begin, end));
    begin = end;
  }
}

/// Returns `part` with marks in the place of spaces.
AlignedText WithMarks(const MetaspaceStep& step, const TextPart& part, bool first) {
  AlignedText marked;
  marked.Reserve(part.text.size() + part.text.size() / 2);
  const bool has_mark = part.text.starts_with(' ') || part.text.starts_with(step.mark);
  const bool at_begin = first && part.BeginOf(0) == 0;
  if (!has_mark && (step.prepend == MetaspaceStep::Prepend::kAlways ||
                    (step.prepend == MetaspaceStep::Prepend::kFirst && at_begin))) {
    marked.Append(step.mark, {part.BeginOf(0), part.BeginOf(0)});
  }
  std::size_t done = 0;
  Pattern::Matches spaces(step.space, part.text);
  while (const std::optional<Match> space = spaces.Next()) {
    marked.Keep(part, done, space->begin);
    marked.Append(step.mark, {part.BeginOf(space->begin), part.EndOf(space->begin)});
    done = space->end;
  }
  marked.Keep(part, done, part.text.size());
  return marked;
}

}  // namespace

PreTokenizer::PreTokenizer(const JsonNode& node) {
  ForEachStep(node, "pretokenizers", [&](const JsonNode& step, const JsonNode& type) {
    if (byte_level_) {
      step.Fail("expected no step after ByteLevel");
    } else if (type.Text() == "Split") {
      ReadSplit(step);
    } else if (type.Text() == "ByteLevel") {
      ReadByteLevel(step);
    } else if (type.Text() == "Metaspace") {
      ReadMetaspace(step);
    } else {
      type.Refuse("Sequence, Split, ByteLevel or Metaspace");
    }
  });
}

void PreTokenizer::ReadSplit(const JsonNode& node) {
  const JsonNode behavior = node.At("behavior");
  SplitStep step{ReadPattern(node.At("pattern"))};
  if (behavior.Text() == "Removed") {
    step.keeps_matches = node.FlagOr("invert", false);
    step.keeps_rest = !step.keeps_matches;
  } else if (behavior.Text() != "Isolated") {
    behavior.Refuse("Isolated or Removed");
  }
  steps_.emplace_back(std::move(step));
}

void PreTokenizer::ReadByteLevel(const JsonNode& node) {
  byte_level_ = true;
  if (node.FlagOr("add_prefix_space", true)) steps_.emplace_back(LeadingSpaceStep{});
  if (node.FlagOr("use_regex", true)) steps_.emplace_back(SplitStep{Pattern(kGpt2Words)});
}

void PreTokenizer::ReadMetaspace(const JsonNode& node) {
  MetaspaceStep step{Pattern::Literal(" "), ReadMark(node)};
  if (const auto scheme = node.Find("prepend_scheme")) {
    using enum MetaspaceStep::Prepend;
    if (scheme->Text() == "first") {
      step.prepend = kFirst;
    } else if (scheme->Text() == "never") {
      step.prepend = kNever;
    } else if (scheme->Text() != "always") {
      scheme->Refuse("always, first or never");
    }
  } else if (!node.FlagOr("add_prefix_space", true)) {
    step.prepend = MetaspaceStep::Prepend::kNever;
  }
  step.splits = node.FlagOr("split", true);
  steps_.emplace_back(std::move(step));
}

std::string ReadMark(const JsonNode& node) {
  const JsonNode mark = node.At("replacement");
  const std::string& text = mark.Text();
  if (text.empty() || CharacterAt(text, 0).bytes != text.size()) mark.Refuse("a character");
  return text;
}

void PreTokenizer::Split(const TextPart& part, bool first, const Sink& sink) const {
  Run(0, part, first, sink);
}

void PreTokenizer::Run(std::size_t step, const TextPart& part, bool first, const Sink& sink) const {
  if (part.text.empty()) return;
  if (step == steps_.size()) return sink(part);
  const auto next = [&](const TextPart& piece) { Run(step + 1, piece, first, sink); };
  if (const auto* split = std::get_if<SplitStep>(&steps_[step])) {
    ForEachPiece(*split, part, next);
  } else if (const auto* metaspace = std::get_if<MetaspaceStep>(&steps_[step])) {
    const AlignedText marked = WithMarks(*metaspace, part, first);
    if (metaspace->splits) return ForEachMarked(metaspace->mark, marked.part(), next);
    next(marked.part());
  } else if (part.text.starts_with(' ')) {
    next(part);
  } else {
    AlignedText spaced;
    spaced.Append(" ", {part.BeginOf(0), part.BeginOf(0)});
    spaced.Keep(part, 0, part.text.size());
    next(spaced.part());
  }
}

}  // namespace troupe::bpe
