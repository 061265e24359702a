#include "data/text/bpe/unicode_form.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utf8proc.h>

#include "data/text/bpe/utf8.hpp"

namespace troupe::bpe {
namespace {

utf8proc_option_t OptionsOf(UnicodeForm form) {
  const bool composed = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc;
  const bool compatible = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (compatible ? UTF8PROC_COMPAT : 0));
}

std::string InForm(std::string_view text, UnicodeForm form) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped, OptionsOf(form));
  if (length < 0) throw std::runtime_error(std::string("utf8proc: ") + utf8proc_errmsg(length));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length)};
}

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

/// Whether no form changes the text, without a look at tables.
bool IsSurelyInForm(std::string_view text, UnicodeForm form) {
  if (form != UnicodeForm::kNfc) return std::ranges::all_of(text, IsAscii);
  // U+0300 is the first character that NFC may join with another one or replace.
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xcc; });
}

bool IsStarter(char32_t code) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class == 0;
}

/// Writes a run of characters piece by piece: a piece ends before a starter that does not join with
/// it.
class Run {
 public:
  Run(const TextPart& part, UnicodeForm form) : part_(part), form_(form) {}

  void AppendTo(AlignedText& out) {
    const std::string whole = InForm(part_.text, form_);
    if (whole == part_.text) return out.Keep(part_, 0, part_.text.size());
    std::string joined;
    for (std::size_t begin = 0; begin < part_.text.size();) {
      const std::size_t end = EndOfPiece(begin);
      pieces_.push_back({begin, end, InForm(part_.text.substr(begin, end - begin), form_)});
      joined += pieces_.back().text;
      begin = end;
    }
    if (joined != whole) pieces_ = {{0, part_.text.size(), whole}};
    for (const Piece& piece : pieces_) {
      if (piece.text == part_.text.substr(piece.begin, piece.end - piece.begin)) {
        out.Keep(part_, piece.begin, piece.end);
      } else {
        out.Append(piece.text, {part_.BeginOf(piece.begin), part_.EndOf(piece.end - 1)});
      }
    }
  }

 private:
  struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string text;
  };

  std::size_t EndOfPiece(std::size_t begin) const {
    std::size_t end = begin + CharacterAt(part_.text, begin).bytes;
    while (end < part_.text.size()) {
      const Character next = CharacterAt(part_.text, end);
      if (IsStarter(next.code) && StandsAlone(begin, end, end + next.bytes)) break;
      end += next.bytes;
    }
    return end;
  }

  bool StandsAlone(std::size_t begin, std::size_t middle, std::size_t end) const {
    const std::string_view before = part_.text.substr(begin, middle - begin);
    const std::string_view next = part_.text.substr(middle, end - middle);
    return InForm(part_.text.substr(begin, end - begin), form_) ==
           InForm(before, form_) + InForm(next, form_);
  }

  const TextPart& part_;
  UnicodeForm form_;
  std::vector<Piece> pieces_;
};

}  // namespace

bool AppendInForm(const TextPart& part, UnicodeForm form, AlignedText& out) {
  const std::string_view text = part.text;
  if (IsSurelyInForm(text, form) || InForm(text, form) == text) return false;
  out.Reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    // A run: ASCII, of which only the last may join with what follows, then other characters.
    const auto first =
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), IsAscii);
    const auto last = std::find_if(first, text.end(), IsAscii);
    const auto other = static_cast<std::size_t>(first - text.begin());
    const auto end = static_cast<std::size_t>(last - text.begin());
    const std::size_t joint = other > begin && end > other ? other - 1 : other;
    out.Keep(part, begin, joint);
    if (joint < end) Run(part.Sub(joint, end), form).AppendTo(out);
    begin = end;
  }
  return true;
}

}  // namespace troupe::bpe
