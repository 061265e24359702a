#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "data/images/image.hpp"
#include "data/rows/llava.hpp"
#include "data/sample.hpp"
#include "tests/data/read_llava.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRepositorySet = "data/shapes";
const std::vector<std::string> kJsonFiles = {"train.json", "held_out.json", "train_two.json",
                                             "held_out_two.json"};
const std::vector<RowField> kTwoEncoders = {{"image", "<image>"}, {"detail", "<detail>"}};

std::vector<std::string> ImagesOf(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".png") {
      names.push_back(fs::relative(entry.path(), folder).string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The first rows of a list with one row a line, without the brackets around them.
std::vector<std::string> FirstRows(const std::string& file, std::size_t count) {
  std::istringstream lines(BytesOf(file));
  std::vector<std::string> rows;
  for (std::string line; rows.size() < count && std::getline(lines, line);) {
    if (line.size() > 2) rows.push_back(line.substr(0, line.rfind('}') + 1));
  }
  return rows;
}

// A set with more rows begins with the rows of a smaller one, so some of them suffice.
TEST_CASE("the shapes in the repository are what tools/draw_shapes.py draws", "[data]") {
  if (std::system("python3 --version >/dev/null 2>&1") != 0) {
    WARN("not tested without python3");
    return;
  }
  const ScratchFolder folder;
  const std::string command = "tools/draw_shapes.py --train 12 --held-out 4 " + folder.path();
  REQUIRE(std::system(command.c_str()) == 0);
  for (const std::string& name : kJsonFiles) {
    INFO(name);
    const std::size_t count = name.starts_with("train") ? 12 : 4;
    const auto rows = FirstRows(folder / name, count);
    CHECK(rows.size() == count);
    CHECK(rows == FirstRows(std::string(kRepositorySet) + "/" + name, count));
  }
  const auto images = ImagesOf(folder.path());
  CHECK(images.size() >= 16);
  for (const std::string& name : images) {
    INFO(name);
    CHECK(ReadImage(folder / name) == ReadImage(std::string(kRepositorySet) + "/" + name));
  }
}

TEST_CASE("no two images of the repository's set are the same, held-out ones included", "[data]") {
  const std::string folder = kRepositorySet;
  std::set<std::string> bytes;
  const auto images = ImagesOf(folder);
  for (const std::string& name : images) bytes.insert(BytesOf(folder + "/" + name));
  CHECK(bytes.size() == images.size());
}

TEST_CASE("the repository's set is small and its images are all used", "[data]") {
  const std::string folder = kRepositorySet;
  std::set<std::string> used;
  for (const char* name : {"/train_two.json", "/held_out_two.json"}) {
    for (const LlavaRow& row : ReadLlava(folder + name, kTwoEncoders).rows) {
      for (const auto& files : row.files) used.insert(files.begin(), files.end());
    }
  }
  const auto images = ImagesOf(folder);
  CHECK(std::set<std::string>(images.begin(), images.end()) == used);
  CHECK(images.size() < 1500);
  std::uintmax_t num_bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) num_bytes += entry.file_size();
  }
  CHECK(num_bytes < 3'000'000);
}

TEST_CASE("rows have none, one or two images, and some two-encoder rows a detail", "[data]") {
  const std::string folder = kRepositorySet;
  for (const std::string set : {"train", "held_out"}) {
    std::map<std::size_t, int> by_images;
    std::map<std::size_t, int> by_details;
    const auto one = ReadLlava(folder + "/" + set + ".json", {kTwoEncoders[0]}).rows;
    const auto two = ReadLlava(folder + "/" + set + "_two.json", kTwoEncoders).rows;
    REQUIRE(one.size() == two.size());
    CHECK(one.size() == (set == "train" ? 600 : 64));
    for (std::size_t i = 0; i < one.size(); ++i) {
      ++by_images[one[i].files[0].size()];
      ++by_details[two[i].files[1].size()];
      CHECK(one[i].id == two[i].id);
      CHECK(one[i].files[0] == two[i].files[0]);
    }
    for (const std::size_t num_images : {0, 1, 2}) {
      INFO(set << ": " << num_images << " images");
      CHECK(by_images[num_images] * 20 >= static_cast<int>(one.size()));
    }
    CHECK(by_details[0] * 4 >= static_cast<int>(one.size()));
    CHECK(by_details[1] * 4 >= static_cast<int>(one.size()));
  }
}

TEST_CASE("no sample of the repository's set is longer than the configs' context", "[data]") {
  const auto tokenizer = MakeTokenizer("bytes", {"<image>", "<audio>"});
  const ItemFormat items = {[](const ItemFile&) { return PlacesInOrder(1, 16); }};
  const SampleFormat format = {tokenizer, kTwoEncoders, {items, items}, 96};
  const std::string folder = kRepositorySet;
  for (const std::string& name : kJsonFiles) {
    auto encoders = kTwoEncoders;
    const ReadRows set = ReadLlava(folder + "/" + name, encoders);
    for (const LlavaRow& row : set.rows) {
      const Sample sample = BuildSample(set, row, format);
      INFO(set.file << ": " << row.id);
      CHECK(sample.tokens.back() == tokenizer->eos());
    }
  }
}

TEST_CASE("a caption's colours are in its image", "[data]") {
  const std::map<std::string, std::vector<int>> colours = {
      {"red", {225, 35, 40}},     {"green", {40, 185, 65}},   {"blue", {45, 85, 235}},
      {"yellow", {250, 215, 45}}, {"purple", {165, 60, 205}}, {"white", {245, 245, 245}}};
  const ReadRows set = ReadLlava(std::string(kRepositorySet) + "/held_out.json", {kTwoEncoders[0]});
  int checked = 0;
  for (const LlavaRow& row : set.rows) {
    if (row.files[0].size() != 1) continue;
    const Image image = ReadImage(set.PathOf(row.files[0][0]));
    for (const auto& [name, value] : colours) {
      int pixels = 0;
      for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
        pixels += image.pixels[i] == value[0] && image.pixels[i + 1] == value[1] &&
                  image.pixels[i + 2] == value[2];
      }
      const bool named = (" " + row.turns[1].text).find(" " + name + " ") != std::string::npos;
      INFO(row.id << ": " << row.turns[1].text << " has " << pixels << " pixels of " << name);
      CHECK(named == (pixels > 0));
      if (named) CHECK(pixels >= 20);
      ++checked;
    }
  }
  CHECK(checked > 200);
}

}  // namespace
}  // namespace troupe
