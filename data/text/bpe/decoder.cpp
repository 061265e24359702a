#include "data/text/bpe/decoder.hpp"

#include <charconv>
#include <numeric>
#include <stdexcept>

#include "data/text/bpe/byte_letters.hpp"
#include "data/text/bpe/normalizer.hpp"
#include "data/text/bpe/pre_tokenizer.hpp"
#include "data/text/bpe/steps.hpp"
#include "data/text/bpe/utf8.hpp"

namespace troupe::bpe {
namespace {

constexpr std::uint32_t kMaxStripped = 1 << 10U;

using Tokens = std::vector<std::string>;

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

/// Returns the byte of "<0x0A>"; -1 for another token.
int FallbackByte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
  int byte = -1;
  const auto parsed = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return parsed.ptr == token.data() + 5 ? byte : -1;
}

void Apply(const BytesStep&, Tokens& tokens) {
  std::string joined;
  for (const std::string& token : tokens) joined += BytesOf(token).value_or(token);
  tokens = {std::string(WithoutBrokenUtf8(joined).part().text)};
}

void Apply(const FallbackStep&, Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (ValidPrefix(bytes) == bytes.size()) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), Utf8Of(0xfffd));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = FallbackByte(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(out);
}

void Apply(const FuseStep&, Tokens& tokens) {
  tokens = {std::accumulate(tokens.begin(), tokens.end(), std::string())};
}

void Apply(const DecodedReplaceStep& step, Tokens& tokens) {
  for (std::string& token : tokens) {
    std::string out;
    std::size_t done = 0;
    Pattern::Matches matches(step.pattern, token);
    while (const auto match = matches.Next()) {
      out.append(token, done, match->begin - done).append(step.text);
      done = match->end;
      if (out.size() > MostBytesOf(token.size())) {
        throw std::runtime_error("the decoder of the tokenizer makes a token 32 times as long");
      }
    }
    token = out.append(token, done);
  }
}

void Apply(const StripStep& step, Tokens& tokens) {
  for (std::string& token : tokens) {
    for (std::size_t i = 0; i < step.at_begin && token.starts_with(step.text); ++i) {
      token.erase(0, step.text.size());
    }
    for (std::size_t i = 0; i < step.at_end && token.ends_with(step.text); ++i) {
      token.resize(token.size() - step.text.size());
    }
  }
}

void Apply(const UnmarkStep& step, Tokens& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ReplaceAll(tokens[i], step.mark, i == 0 && step.prepended ? "" : " ");
  }
}

}  // namespace

Decoder::Decoder(const JsonNode& node) {
  ForEachStep(node, "decoders", [&](const JsonNode& step, const JsonNode& type) {
    if (type.Text() == "ByteLevel") {
      steps_.emplace_back(BytesStep{});
    } else if (type.Text() == "ByteFallback") {
      steps_.emplace_back(FallbackStep{});
    } else if (type.Text() == "Fuse") {
      steps_.emplace_back(FuseStep{});
    } else if (type.Text() == "Replace") {
      steps_.emplace_back(
          DecodedReplaceStep{ReadPattern(step.At("pattern")), ReadInserted(step.At("content"))});
    } else if (type.Text() == "Strip") {
      steps_.emplace_back(StripStep{step.At("content").Text(),
                                    step.At("start").Number(kMaxStripped),
                                    step.At("stop").Number(kMaxStripped)});
    } else if (type.Text() == "Metaspace") {
      steps_.emplace_back(UnmarkStep{ReadMark(step), step.TextOr("prepend_scheme", "") != "never" &&
                                                         step.FlagOr("add_prefix_space", true)});
    } else {
      type.Refuse("Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip or Metaspace");
    }
  });
}

std::string Decoder::Join(std::vector<std::string> tokens) const {
  for (const DecoderStep& step : steps_) {
    std::visit([&](const auto& kind) { Apply(kind, tokens); }, step);
  }
  return std::accumulate(tokens.begin(), tokens.end(), std::string());
}

}  // namespace troupe::bpe
