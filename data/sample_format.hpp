// The form in which the modules of a configuration read samples.
#pragma once

#include <memory>
#include <vector>

#include "configs/config.hpp"
#include "data/sample.hpp"
#include "data/tokenizer.hpp"

namespace troupe {

/// Returns the modules that read a field, in the order of the config file.
std::vector<const ModuleConfig*> DataEncoders(const Config& config);

struct OwnedFormat {
  std::unique_ptr<const Tokenizer> tokenizer;
  SampleFormat format;  ///< refers to that tokenizer
};

/// Throws DataError if a vocabulary is too small for the tokenizer, or its file cannot be used.
OwnedFormat FormatOf(const Config& config);

/// Returns a format for lists read without a configuration: images in the field "image",
/// placeholder "<image>", no rows, and a context that no sample exceeds.
OwnedFormat PlainFormat();

}  // namespace troupe
