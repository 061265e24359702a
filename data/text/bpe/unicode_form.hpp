// Normalization forms of Unicode, with the places that each character comes from.
#pragma once

#include "data/text/bpe/normalizer.hpp"
#include "data/text/bpe/text_part.hpp"

namespace troupe::bpe {

/// Appends `part` in `form` to `out` and returns true; or returns false, and appends nothing,
/// because the part has that form.
bool AppendInForm(const TextPart& part, UnicodeForm form, AlignedText& out);

}  // namespace troupe::bpe
