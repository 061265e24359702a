// Compares the data of the processes of a job without moving it.
#pragma once

#include <cstdint>
#include <string>

#include "configs/config.hpp"

namespace troupe {

/// Returns the SHA-256 of the schedule and the tokenizer that `config` names, one "key = value" a line:
/// "data.tokenizer (contents) = sha256 9f86d081884c7d65". RowSource::RowsDigest has the rows. A file that
/// cannot be read has no line: the code that opens it reports the error.
std::string DataDigests(const Config& config);

/// Returns all that turns a row into a sample, one "key = value" a line: tokenizer, prompt, encoders, and
/// `context`, the most tokens of a sample.
std::string FormatLines(const Config& config, std::int64_t context);
/// Returns a digest of it: 32 digits.
std::string FormatKey(const Config& config, std::int64_t context);

}  // namespace troupe
