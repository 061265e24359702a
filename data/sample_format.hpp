// The form in which the modules of a configuration take their samples.
#pragma once

#include <memory>
#include <vector>

#include "configs/config.hpp"
#include "data/sample.hpp"
#include "data/tokenizer.hpp"

namespace troupe {

/// The encoders that read data, in the order of the config file.
std::vector<const ModuleConfig*> DataEncoders(const Config& config);

struct OwnedFormat {
  std::unique_ptr<const Tokenizer> tokenizer;
  SampleFormat format;  ///< with that tokenizer
};

/// Throws DataError where a vocabulary is too small for the tokenizer, or its file is not usable.
OwnedFormat FormatOf(const Config& config);

/// For a list that is read without a configuration: one encoder of the field "image", placeholder
/// "<image>", and a context that nothing exceeds.
OwnedFormat PlainFormat();

}  // namespace troupe
