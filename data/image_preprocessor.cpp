#include "data/image_preprocessor.hpp"

namespace troupe {
namespace {

class ImagePreprocessor final : public Preprocessor {
 public:
  explicit ImagePreprocessor(const ImageField& field) : field_(field) {}

  std::int64_t LengthOf(const std::string& /*file*/) const override { return 1; }
  void Read(const std::string& file, std::span<float> output) const override {
    ToPixels(ReadImage(file), field_.size(), field_.normalisation(), output);
  }
  std::optional<ImageFacts> Check(const std::string& file, bool decode) const override {
    return CheckImage(file, decode);
  }

 private:
  ImageField field_;
};

}  // namespace

std::unique_ptr<const Preprocessor> MakeImagePreprocessor(const Field& field) {
  const auto* const images = dynamic_cast<const ImageField*>(&field);
  return images == nullptr ? nullptr : std::make_unique<ImagePreprocessor>(*images);
}

}  // namespace troupe
