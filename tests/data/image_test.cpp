#include "data/images/image.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <jpeglib.h>
#include <png.h>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "data/images/resize.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/data/write_png.hpp"

namespace troupe {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Smooth, with every pixel and channel different from its neighbours.
Image Gradient(int width, int height) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(x * 255 / std::max(1, width - 1)));
      image.pixels.push_back(static_cast<std::uint8_t>(y * 255 / std::max(1, height - 1)));
      image.pixels.push_back(static_cast<std::uint8_t>((x + 2 * y) * 3 % 200));
    }
  }
  return image;
}

Bytes EncodePng(png_uint_32 format, int width, int height, const void* pixels) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(width);
  png.height = static_cast<png_uint_32>(height);
  png.format = format;
  png_alloc_size_t num_bytes = 0;
  REQUIRE(png_image_write_to_memory(&png, nullptr, &num_bytes, 0, pixels, 0, nullptr) != 0);
  Bytes bytes(num_bytes);
  REQUIRE(png_image_write_to_memory(&png, bytes.data(), &num_bytes, 0, pixels, 0, nullptr) != 0);
  bytes.resize(num_bytes);
  return bytes;
}

Bytes EncodeJpeg(int width, int height, int channels, J_COLOR_SPACE space, const Bytes& pixels,
                 bool progressive = false) {
  jpeg_compress_struct encoder = {};
  jpeg_error_mgr errors = {};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long num_bytes = 0;
  jpeg_mem_dest(&encoder, &memory, &num_bytes);
  encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.image_height = static_cast<JDIMENSION>(height);
  encoder.input_components = channels;
  encoder.in_color_space = space;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 98, TRUE);
  if (progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  while (encoder.next_scanline < encoder.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data()) +
                   encoder.next_scanline * static_cast<std::size_t>(width * channels);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  Bytes bytes(memory, memory + num_bytes);
  std::free(memory);
  return bytes;
}

int WorstDifference(const Bytes& a, const Bytes& b) {
  REQUIRE(a.size() == b.size());
  int worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

TEST_CASE("a png comes back pixel by pixel", "[data]") {
  const ScratchFolder folder;
  const Image image = Gradient(7, 5);
  WritePng(folder / "a.png", image);
  CHECK(ReadImage(folder / "a.png") == image);
}

TEST_CASE("grey and transparent pngs become rgb, without their alpha", "[data]") {
  const Bytes grey = {0, 50, 100, 255};
  const Image from_grey = DecodeImage(EncodePng(PNG_FORMAT_GRAY, 2, 2, grey.data()));
  CHECK(from_grey.pixels == Bytes{0, 0, 0, 50, 50, 50, 100, 100, 100, 255, 255, 255});
  const Bytes alpha = {10, 20, 30, 255, 10, 20, 30, 0};
  const Image from_alpha = DecodeImage(EncodePng(PNG_FORMAT_RGBA, 2, 1, alpha.data()));
  CHECK(from_alpha.pixels == Bytes{10, 20, 30, 10, 20, 30});
}

TEST_CASE("a png of 16 bits per channel becomes one of 8", "[data]") {
  // libpng notes that these are linear light; Pillow ignores that, and so does the decoder.
  const std::array<std::uint16_t, 6> linear = {0, 32768, 65535, 65535, 0, 32768};
  const Image image = DecodeImage(EncodePng(PNG_FORMAT_LINEAR_RGB, 2, 1, linear.data()));
  CHECK(image.pixels == Bytes{0, 128, 255, 255, 0, 128});
}

TEST_CASE("jpegs decode to what was encoded, up to their loss", "[data]") {
  // Only smooth channels: the loss is then small.
  Image image = Gradient(40, 24);
  for (std::size_t i = 2; i < image.pixels.size(); i += 3) image.pixels[i] = 90;
  const bool progressive = GENERATE(false, true);
  const Image decoded = DecodeImage(EncodeJpeg(40, 24, 3, JCS_RGB, image.pixels, progressive));
  CHECK(decoded.width == 40);
  CHECK(decoded.height == 24);
  CHECK(WorstDifference(decoded.pixels, image.pixels) < 24);
}

TEST_CASE("a grey jpeg becomes rgb", "[data]") {
  const Bytes grey(16 * 16, 77);
  const Image image = DecodeImage(EncodeJpeg(16, 16, 1, JCS_GRAYSCALE, grey));
  CHECK(WorstDifference(image.pixels, Bytes(16 * 16 * 3, 77)) <= 1);
}

TEST_CASE("a file cut short anywhere is refused or loses nothing", "[data]") {
  const Image image = Gradient(33, 21);
  const bool png = GENERATE(false, true);
  const bool progressive = GENERATE(false, true);
  const Bytes whole = png ? EncodePng(PNG_FORMAT_RGB, 33, 21, image.pixels.data())
                          : EncodeJpeg(33, 21, 3, JCS_RGB, image.pixels, progressive);
  const Image expected = DecodeImage(whole);
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Image decoded;
    const std::string error = ErrorOf([&] { decoded = DecodeImage({whole.data(), size}); });
    REQUIRE(error.find('\n') == std::string::npos);
    refused += !error.empty();
    INFO("first " << size << " of " << whole.size() << " bytes");
    REQUIRE((!error.empty() || decoded == expected));
  }
  // Only end markers may be missing.
  CHECK(refused + 24 >= whole.size());
}

/// Every byte of `whole` in turn, changed in three ways: pixels change, or one line refuses.
void RequireDamageIsHarmless(const Bytes& whole) {
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      Bytes damaged = whole;
      damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ change);
      try {
        const Image decoded = DecodeImage(damaged);
        REQUIRE(decoded.pixels.size() == static_cast<std::size_t>(decoded.width) *
                                             static_cast<std::size_t>(decoded.height) * 3);
      } catch (const ImageError& error) {
        REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
      }
    }
  }
}

TEST_CASE("damaged bytes never do more than change pixels or be refused", "[data]") {
  const Image image = Gradient(33, 21);
  const bool png = GENERATE(false, true);
  const Bytes whole = png ? EncodePng(PNG_FORMAT_RGB, 33, 21, image.pixels.data())
                          : EncodeJpeg(33, 21, 3, JCS_RGB, image.pixels);
  RequireDamageIsHarmless(whole);
}

/// Files of every format, with metadata at both ends, of which few bytes have no effect.
const char* const kStoredFiles[] = {"lossy_alpha_18x16.webp",
                                    "lossless_18x16.webp",
                                    "animated_part.webp",
                                    "xmp6.webp",
                                    "interlaced_18x16.gif",
                                    "beyond_screen_clear.gif",
                                    "exif6_after_pixels.png",
                                    "raw_profile8.png",
                                    "exif5.jpg"};

Bytes StoredBytes(const char* name) {
  const std::string bytes = BytesOf(std::string("tests/oracle/images/") + name);
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("a stored file cut short anywhere is refused or loses nothing", "[data]") {
  for (const char* name : kStoredFiles) {
    const Bytes whole = StoredBytes(name);
    const Image expected = DecodeImage(whole);
    std::size_t refused = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      Image decoded;
      const std::string error = ErrorOf([&] { decoded = DecodeImage({whole.data(), size}); });
      INFO(name << ": first " << size << " of " << whole.size() << " bytes: " << error);
      REQUIRE(error.find('\n') == std::string::npos);
      REQUIRE((!error.empty() || decoded == expected));
      refused += !error.empty();
    }
    INFO(name);
    CHECK(refused + 12 >= whole.size());
  }
}

TEST_CASE("damaged bytes of a stored file never do more than change pixels", "[data]") {
  for (const char* name : kStoredFiles) {
    const Bytes whole = StoredBytes(name);
    RequireDamageIsHarmless(whole);
  }
}

TEST_CASE("an animation that claims too many pixels is refused before they are allocated",
          "[data]") {
  Bytes webp = StoredBytes("animated.webp");
  for (const std::size_t at : {24, 27}) webp[at] = webp[at + 1] = 0x3f;  // 16192 x 16192
  CHECK_THROWS_WITH(DecodeImage(webp), "not a usable webp: more than 64 million pixels");
  Bytes gif = StoredBytes("beyond_screen.gif");
  for (const std::size_t at : {6, 7, 8, 9}) gif[at] = 0xff;
  CHECK_THROWS_WITH(DecodeImage(gif), "not a usable gif: more than 64 million pixels");
}

TEST_CASE("an image that claims too many pixels is refused before they are allocated", "[data]") {
  // 65500 x 65500, in a file of a few bytes: the header of a small one with other sizes.
  Bytes jpeg = EncodeJpeg(16, 16, 3, JCS_RGB, Bytes(16 * 16 * 3, 9));
  const std::array<std::uint8_t, 2> frame = {0xff, 0xc0};
  const auto header = std::search(jpeg.begin(), jpeg.end(), frame.begin(), frame.end());
  REQUIRE(header != jpeg.end());
  for (const int at : {5, 7}) {
    header[at] = 0xff;
    header[at + 1] = 0xdc;
  }
  CHECK_THROWS_WITH(DecodeImage(jpeg), "not a usable jpeg: more than 64 million pixels");
}

TEST_CASE("a file that is no image is refused by name", "[data]") {
  const ScratchFolder folder;
  const auto text = folder.Write("text.png", "not a picture");
  CHECK_THROWS_WITH(
      ReadImage(text),
      text + ": expected a jpeg, png, webp or gif, got a file that begins like none of them");
  const auto empty = folder.Write("empty.jpg", "");
  CHECK_THROWS_WITH(ReadImage(empty),
                    empty + ": expected a jpeg, png, webp or gif, got an empty file");
  CHECK_THROWS_WITH(ReadImage(folder / "none.png"), (folder / "none.png") + ": no such file");
  const auto long_name = folder / std::string(300, 'x');
  CHECK_THROWS_WITH(ReadImage(long_name), long_name + ": cannot be read: File name too long");
  CHECK_THROWS_WITH(ReadImage(folder.path()), folder.path() + ": expected a file, got a directory");
  const auto huge = folder.Write("huge.png", "");
  std::filesystem::resize_file(huge, kMaxImageBytes + 1);
  CHECK_THROWS_WITH(ReadImage(huge), huge + ": expected at most 64 MiB, got 67108865 bytes");
}

TEST_CASE("an image of the right size is not touched, and extreme ones are resized", "[data]") {
  const Image image = Gradient(32, 32);
  const ImageFit fit = GENERATE(ImageFit::kCrop, ImageFit::kPad, ImageFit::kStretch);
  const Resampling resampling = GENERATE(Resampling::kBicubic, Resampling::kBilinear);
  const ImageRecipe recipe = {.fit = fit, .resampling = resampling, .mean = {0.22, 0.22, 0.22}};
  CHECK(FitIntoSquare(image, 32, recipe) == image.pixels);
  for (const auto& [width, height] : {std::pair{1, 1}, std::pair{1, 5000}, std::pair{5000, 1},
                                      std::pair{200'000, 3}, std::pair{31, 33}}) {
    // The padding is int(255 * 0.22) = 56.
    const Image plain = {width, height, Bytes(static_cast<std::size_t>(width * height * 3), 56)};
    CHECK(FitIntoSquare(plain, 32, recipe) == Bytes(32 * 32 * 3, 56));
  }
  CHECK_THROWS_AS(FitIntoSquare({0, 0, {}}, 32, recipe), ImageError);
}

TEST_CASE("pixels are normalised per channel, channels outermost", "[data]") {
  const Image image{2, 2, {255, 0, 0, 0, 255, 0, 0, 0, 255, 51, 102, 204}};
  std::vector<float> output(12);
  const ImageRecipe recipe = {.mean = {0.5, 0.25, 0.125}, .deviation = {0.5, 0.75, 0.25}};
  ToPixels(image, ImageField(2, recipe), output);
  const auto normal = [](double value, double mean, double deviation) {
    return Approx((value / 255 - mean) / deviation).epsilon(1e-6);
  };
  CHECK(output[0] == normal(255, 0.5, 0.5));
  CHECK(output[3] == normal(51, 0.5, 0.5));
  CHECK(output[4 + 1] == normal(255, 0.25, 0.75));
  CHECK(output[4 + 3] == normal(102, 0.25, 0.75));
  CHECK(output[8 + 2] == normal(255, 0.125, 0.25));
  CHECK(output[8 + 3] == normal(204, 0.125, 0.25));
  CHECK_THROWS_WITH(ToPixels(image, ImageField(3, recipe), output),
                    "image: expected room for 27 numbers, got 12");
}

}  // namespace
}  // namespace troupe
