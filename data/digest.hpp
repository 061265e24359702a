// Whether the processes of a job read the same data, without moving it.
#pragma once

#include <string>

#include "configs/config.hpp"

namespace troupe {

/// The SHA-256 of the lists and the tokenizer that `config` names, one "key = value" a line:
/// "data.train (contents) = sha256 9f86d081884c7d65". Images are not opened. A file that cannot be
/// read has no line: whoever opens it says why.
std::string DataDigests(const Config& config);

}  // namespace troupe
