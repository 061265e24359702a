// Converts JPEG and PNG files to the pixels of an ImageField.
#pragma once

#include "data/preprocessor.hpp"

namespace troupe {

/// Returns null unless `field` is an ImageField.
std::unique_ptr<const Preprocessor> MakeImagePreprocessor(const Field& field);

}  // namespace troupe
