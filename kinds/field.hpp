// A field of samples that a module reads: its type, and the conversion of its items to numbers.
//
// An item (an image, an audio clip) becomes a float32 tensor [length, row shape...]. The items of a
// batch are contiguous along dimension 0. data/preprocessor.hpp makes them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "layout/shape.hpp"

namespace troupe {

class Field {
 public:
  virtual ~Field() = default;
  /// Returns the word for an item in texts: "image". Also the field's name unless the module states
  /// one.
  virtual std::string_view word() const = 0;
  /// Returns the shape of one entry of dimension 0: {3, S, S} for an image, {bins} for a frame of
  /// audio.
  virtual Shape row_shape() const = 0;
};

/// JPEG and PNG files. The shorter side is resized to `size`, the centre is cropped, and each
/// channel is normalised. The length of an item is 1.
class ImageField final : public Field {
 public:
  /// Applies to values in [0, 1], by channel.
  struct Normalisation {
    std::array<double, 3> mean;
    std::array<double, 3> deviation;
  };

  ImageField(std::int64_t size, const Normalisation& normalisation)
      : size_(size), normalisation_(normalisation) {}

  std::string_view word() const override { return "image"; }
  Shape row_shape() const override { return {3, size_, size_}; }
  std::int64_t size() const { return size_; }
  const Normalisation& normalisation() const { return normalisation_; }

 private:
  std::int64_t size_;
  Normalisation normalisation_;
};

}  // namespace troupe
