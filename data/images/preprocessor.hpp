// Converts the files of a field to the tensors of its items. Each type of field has a class.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/images/image.hpp"
#include "data/images/tiles.hpp"
#include "data/rows/item_file.hpp"
#include "kinds/field.hpp"

namespace troupe {

class ModelConfig;

/// Thread-safe. Errors are ImageError or another std::runtime_error and begin with the file's name.
class Preprocessor {
 public:
  virtual ~Preprocessor() = default;
  /// Returns the length of the item along dimension 0. Must be fast: it is called for each sample
  /// of each batch.
  virtual std::int64_t LengthOf(const ItemFile& file) const = 0;
  /// Returns where the rows go that `encoder` emits for the item.
  virtual ItemPlaces PlacesOf(const ItemFile& file, const ModelConfig& encoder) const;
  /// Fills [LengthOf(file), row shape...], float32.
  virtual void Read(const ItemFile& file, std::span<float> output) const = 0;
  /// Does the slow part of Read. Returns `num_values` values of value_bytes() each.
  virtual std::vector<std::uint8_t> Prepare(const ItemFile& file, std::size_t num_values) const;
  virtual std::size_t value_bytes() const { return sizeof(float); }
  /// Fills what Read would fill from what Prepare has returned.
  virtual void Finish(std::span<const std::uint8_t> prepared, std::span<float> output) const;
  /// Returns the name of values of 0 in texts.
  virtual const char* ZerosName() const { return "zeros"; }
  /// Throws if the file cannot be used. `decode`: reads the whole file, else only its header.
  /// Returns the facts of an image.
  virtual std::optional<ImageFacts> Check(const ItemFile& file, bool decode) const = 0;
};

/// Uses the first maker in the list that handles the type of `field`. Throws std::logic_error if
/// there is none.
std::unique_ptr<const Preprocessor> MakePreprocessor(const Field& field);

/// Returns null for fields of another type.
using PreprocessorMaker = std::unique_ptr<const Preprocessor> (*)(const Field& field);
/// Adds a type of field to this program only, such as one of a test. Call it before any data is
/// read.
void AddPreprocessor(PreprocessorMaker maker);

}  // namespace troupe
