#include "data/images/orientation.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace troupe {
namespace {

using namespace std::string_literals;

int OrientationInText(const std::string& exif, const std::string& xmp = "") {
  return OrientationIn({reinterpret_cast<const std::uint8_t*>(exif.data()), exif.size()}, xmp);
}

/// A directory of one entry: tag, type, count and value as in the file.
std::string LittleEndian(const std::string& entry) { return "II*\0\x08\0\0\0\x01\0"s + entry; }

TEST_CASE("an orientation is found in both byte orders, as a short and as a long", "[data]") {
  const std::string little = LittleEndian("\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s);
  CHECK(OrientationInText(little) == 6);
  CHECK(OrientationInText("Exif\0\0"s + little) == 6);
  CHECK(OrientationInText("Exif\0\0Exif\0\0"s + little) == 6);
  CHECK(OrientationInText(LittleEndian("\x12\x01\x04\0\x01\0\0\0\x05\0\0\0"s)) == 5);
  CHECK(OrientationInText("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0"s) == 3);
}

TEST_CASE("the first of two orientations counts", "[data]") {
  const std::string entry = "\x12\x01\x03\0\x01\0\0\0"s;
  const std::string other = "\x10\x01\x03\0\x01\0\0\0\x02\0\0\0"s;
  CHECK(OrientationInText("II*\0\x08\0\0\0\x03\0"s + other + entry + "\x08\0\0\0"s + entry +
                          "\x07\0\0\0"s) == 8);
}

TEST_CASE("several values are elsewhere in the file, and the first one counts", "[data]") {
  CHECK(OrientationInText(LittleEndian("\x12\x01\x03\0\x03\0\0\0\x16\0\0\0"s) +
                          "\x04\0\x05\0\x06\0"s) == 4);
}

TEST_CASE("metadata that cannot be read leave an image as it is", "[data]") {
  const std::string whole = LittleEndian("\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(OrientationInText(whole.substr(0, size)) == 1);
  }
  CHECK(OrientationInText(LittleEndian("\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"s)) == 1);  // 9
  CHECK(OrientationInText(LittleEndian("\x12\x01\x01\0\x01\0\0\0\x06\0\0\0"s)) == 1);  // a byte
  CHECK(OrientationInText(LittleEndian("\x12\x01\x03\0\0\0\0\0\x06\0\0\0"s)) == 1);    // no value
  CHECK(OrientationInText(LittleEndian("\x12\x01\x03\0\x03\0\0\0\xff\xff\xff\xff"s)) == 1);
  CHECK(OrientationInText("II*\0\xff\xff\xff\xff"s) == 1);
  CHECK(OrientationInText("JPEG"s + whole) == 1);
}

TEST_CASE("xmp counts where exif has no orientation", "[data]") {
  CHECK(OrientationInText("", "<x tiff:Orientation=\"6\"/>") == 6);
  CHECK(OrientationInText("", "tiff:OrientationX tiff:Orientation=x <tiff:Orientation>3</") == 3);
  CHECK(OrientationInText("", "tiff:Orientation=\"") == 1);
  const std::string eight = LittleEndian("\x12\x01\x03\0\x01\0\0\0\x08\0\0\0"s);
  CHECK(OrientationInText(eight, "tiff:Orientation=\"6\"") == 8);
}

TEST_CASE("each orientation turns an image upright", "[data]") {
  // Red is the place. Rows of the upright image are 012, 345; the stored ones are as EXIF says.
  const auto image = [](int width, int height, const std::string& places) {
    Image made{width, height, {}};
    for (const char place : places) {
      const auto value = static_cast<std::uint8_t>(place - '0');
      made.pixels.insert(made.pixels.end(), {value, static_cast<std::uint8_t>(100 + value), 7});
    }
    return made;
  };
  const Image upright = image(3, 2, "012345");
  CHECK(Upright(image(3, 2, "012345"), 1) == upright);
  CHECK(Upright(image(3, 2, "210543"), 2) == upright);
  CHECK(Upright(image(3, 2, "543210"), 3) == upright);
  CHECK(Upright(image(3, 2, "345012"), 4) == upright);
  CHECK(Upright(image(2, 3, "031425"), 5) == upright);
  CHECK(Upright(image(2, 3, "251403"), 6) == upright);
  CHECK(Upright(image(2, 3, "524130"), 7) == upright);
  CHECK(Upright(image(2, 3, "304152"), 8) == upright);
}

}  // namespace
}  // namespace troupe
