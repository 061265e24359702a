// Pixels compared with Pillow's, byte by byte. tests/data/images/README.md has the origin of the
// files.
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "data/images/image.hpp"
#include "data/images/resize.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

const std::string kFolder = "tests/data/images/";

std::string Hexadecimal(const std::vector<std::uint8_t>& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

TEST_CASE("images of every mode decode to the pixels that Pillow gives", "[data]") {
  std::ifstream lines(kFolder + "pillow.txt");
  std::string name;
  std::string pixels;
  int width = 0;
  int height = 0;
  int num_files = 0;
  while (lines >> name >> width >> height >> pixels) {
    INFO(name);
    ++num_files;
    const Image image = ReadImage(kFolder + name);
    CHECK(image.width == width);
    CHECK(image.height == height);
    CHECK(Hexadecimal(image.pixels) == pixels);
    for (const bool decode : {false, true}) {
      const ImageFacts facts = CheckImage(kFolder + name, decode);
      // As stored: orientation 6 exchanges them.
      const bool turned = name.starts_with("exif");
      CHECK(facts.width == (turned ? height : width));
      CHECK(facts.height == (turned ? width : height));
      CHECK((facts.format == ImageFormat::kPng) == (name.find(".png") != name.npos));
    }
  }
  CHECK(num_files == 32);
}

TEST_CASE("resized images equal Pillow's bicubic ones in every byte", "[data]") {
  std::ifstream lines(kFolder + "pillow_resized.txt");
  std::string name;
  std::string pixels;
  int size = 0;
  int num_images = 0;
  while (lines >> name >> size >> pixels) {
    INFO(name << " to " << size);
    ++num_images;
    CHECK(Hexadecimal(FitIntoSquare(ReadImage(kFolder + name), size, {})) == pixels);
  }
  CHECK(num_images == 9);
}

TEST_CASE("a grey png of 16 bits keeps its upper bytes, where Pillow makes it white", "[data]") {
  // The first row, as written: upper bytes of 47819, 51177, 45704.
  const Image image = ReadImage(kFolder + "grey16.png");
  const std::vector<std::uint8_t> start(image.pixels.begin(), image.pixels.begin() + 9);
  CHECK(start == std::vector<std::uint8_t>{186, 186, 186, 199, 199, 199, 178, 178, 178});
}

TEST_CASE("formats that are not decoded are refused by name, with the next step", "[data]") {
  const ScratchFolder folder;
  const auto refusal = [&](const std::string& bytes) {
    const std::string file = folder.Write("a.jpg", bytes);
    const std::string start = file + ": expected a jpeg, png, webp or gif, got ";
    for (const bool decode : {false, true}) {
      const std::string error = ErrorOf([&] { static_cast<void>(CheckImage(file, decode)); });
      REQUIRE(error.substr(0, start.size()) == start);
      REQUIRE(error == ErrorOf([&] { static_cast<void>(ReadImage(file)); }));
    }
    return ErrorOf([&] { static_cast<void>(ReadImage(file)); }).substr(start.size());
  };
  const auto other = [](const std::string& name) {
    return "a file of another format (" + name + "): convert it and correct the row";
  };
  using namespace std::string_literals;
  CHECK(refusal("BM..........") == other("bmp"));
  CHECK(refusal("II*\0........"s) == other("tiff"));
  CHECK(refusal("MM\0*........"s) == other("tiff"));
  CHECK(refusal("\0\0\0\x20"s + "ftypavif") == other("avif or heif"));
  CHECK(refusal("<!DOCTYPE html><title>404</title>") == other("html page"));
  CHECK(refusal("") == "an empty file");
}

TEST_CASE("a check of the header finds no fault in pixels, a check that decodes does", "[data]") {
  const ScratchFolder folder;
  for (const char* name : {"rgb_420.jpg", "rgb16.png"}) {
    const std::string whole = BytesOf(kFolder + name);
    const std::string file = folder.Write(name, whole.substr(0, whole.size() * 9 / 10));
    CHECK(CheckImage(file, false).width > 0);
    CHECK_THROWS_AS(CheckImage(file, true), ImageError);
    const std::string header = folder.Write(name, whole.substr(0, 20));
    CHECK_THROWS_AS(CheckImage(header, false), ImageError);
  }
}

TEST_CASE("a header behind long metadata is found", "[data]") {
  // 40,000 bytes of an application's segment before everything else.
  const std::string whole = BytesOf(kFolder + "rgb_420.jpg");
  const std::string segment = "\xff\xe5\x9c\x42" + std::string(40'000, 'x');
  const ScratchFolder folder;
  const std::string file = folder.Write("a.jpg", whole.substr(0, 2) + segment + whole.substr(2));
  CHECK(CheckImage(file, false).width == 24);
  CHECK(ReadImage(file) == ReadImage(kFolder + "rgb_420.jpg"));
}

}  // namespace
}  // namespace troupe
