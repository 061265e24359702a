// Writes a data set of coloured shapes with captions, from a seed. A small model learns it in
// minutes.
//
// Four kinds of rows: one image of one shape, one image of two shapes (named left to right), two
// images of one shape each, and a question about a colour without an image. For models with two
// encoders the same rows are written a second time, some with a close-up of one shape in a field
// "detail". data/README.md shows one of each.
#pragma once

#include <cstdint>
#include <string>

namespace troupe {

struct SynthOptions {
  std::string folder;
  int num_train = 600;
  int num_held_out = 64;
  std::uint64_t seed = 1;
  int size = 32;  ///< pixels, of every image's side; 8 to 1024
};

/// Writes train.json, held_out.json, train_two.json, held_out_two.json and the folders images/ and
/// details/ into `folder`, and replaces files of the same names. The same options give the same
/// rows and pixels on every machine. Throws std::runtime_error with the path that cannot be
/// written, std::invalid_argument for options out of range.
void WriteShapes(const SynthOptions& options);

}  // namespace troupe
