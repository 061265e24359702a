// A format of samples with two encoders: the first reads images of 2 x 2 pixels, the second sound.
#pragma once

#include "data/sample.hpp"

namespace troupe {

inline SampleFormat FormatOfTwoEncoders() {
  SampleFormat format = PlainFormat();
  ItemFormat& items = format.items.front();
  items.preprocessor = MakePreprocessor(ImageField(2, {}));
  items.row_shape = {3, 2, 2};
  format.fields.emplace_back().word = "sound";
  format.items.push_back(items);
  return format;
}

}  // namespace troupe
