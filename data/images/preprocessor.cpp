#include "data/images/preprocessor.hpp"

#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "kinds/kind.hpp"

namespace troupe {
namespace {

class ImagePreprocessor final : public Preprocessor {
 public:
  explicit ImagePreprocessor(const ImageField& field) : field_(field) {}

  std::int64_t LengthOf(const ItemFile& file) const override {
    return field_.recipe().has_tiles() ? 1 + GridOf(field_, SizeOf(file)).num_tiles() : 1;
  }
  ItemPlaces PlacesOf(const ItemFile& file, const ModelConfig& encoder) const override {
    if (!field_.recipe().has_tiles()) return Preprocessor::PlacesOf(file, encoder);
    const PixelSize size = SizeOf(file);
    return PlacesOfTiles(size, GridOf(field_, size), encoder.tile_side());
  }
  void Read(const ItemFile& file, std::span<float> output) const override {
    Finish(Prepare(file, output.size()), output);
  }
  std::vector<std::uint8_t> Prepare(const ItemFile& file, std::size_t num_values) const override {
    const Image image = ReadImage(file);
    const PixelSize size{image.height, image.width};
    std::vector<std::uint8_t> squares = ToSquares(image, field_);
    if (squares.size() != num_values || (field_.recipe().has_tiles() && size != SizeOf(file))) {
      throw ImageError(file.name + ": its size has changed since it was counted");
    }
    return squares;
  }
  std::size_t value_bytes() const override { return 1; }
  void Finish(std::span<const std::uint8_t> prepared, std::span<float> output) const override {
    Normalise(prepared, field_, output);
  }
  const char* ZerosName() const override { return "the mean colour"; }
  std::optional<ImageFacts> Check(const ItemFile& file, bool decode) const override {
    return CheckImage(file, decode);
  }

 private:
  /// Reads the header of a file once: its tiles must not change while it is in use.
  PixelSize SizeOf(const ItemFile& file) const {
    if (file.bytes) return ReadUprightSize(file);  // a shard does not change
    const std::size_t key = std::hash<std::string>()(file.name);
    {
      const std::lock_guard lock(mutex_);
      const auto known = sizes_.find(key);
      if (known != sizes_.end()) return known->second;
    }
    const PixelSize size = ReadUprightSize(file);
    const std::lock_guard lock(mutex_);
    if (sizes_.size() >= kMostSizes) sizes_.clear();
    return sizes_.emplace(key, size).first->second;
  }

  static constexpr std::size_t kMostSizes = 1'000'000;

  ImageField field_;
  mutable std::mutex mutex_;  ///< guards `sizes_`
  /// By hash of the file's name.
  mutable std::unordered_map<std::size_t, PixelSize> sizes_;
};

std::unique_ptr<const Preprocessor> MakeImagePreprocessor(const Field& field) {
  const auto* const images = dynamic_cast<const ImageField*>(&field);
  return images == nullptr ? nullptr : std::make_unique<ImagePreprocessor>(*images);
}

std::vector<PreprocessorMaker>& Makers() {
  static std::vector<PreprocessorMaker> makers = {&MakeImagePreprocessor};
  return makers;
}

}  // namespace

ItemPlaces Preprocessor::PlacesOf(const ItemFile& file, const ModelConfig& encoder) const {
  const std::int64_t length = LengthOf(file);
  return PlacesInOrder(length, encoder.RowsOf(length));
}

std::vector<std::uint8_t> Preprocessor::Prepare(const ItemFile& file,
                                                std::size_t num_values) const {
  std::vector<float> values(num_values);
  Read(file, values);
  std::vector<std::uint8_t> bytes(num_values * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

void Preprocessor::Finish(std::span<const std::uint8_t> prepared, std::span<float> output) const {
  std::memcpy(output.data(), prepared.data(), output.size_bytes());
}

std::unique_ptr<const Preprocessor> MakePreprocessor(const Field& field) {
  for (const PreprocessorMaker make : Makers()) {
    if (auto preprocessor = make(field)) return preprocessor;
  }
  throw std::logic_error("field \"" + std::string(field.word()) +
                         "\": no preprocessor in data/images/preprocessor.cpp knows its type");
}

void AddPreprocessor(PreprocessorMaker maker) { Makers().push_back(maker); }

}  // namespace troupe
