// A field that no kind of this program reads: sound whose length differs from file to file.
#include "data/images/preprocessor.hpp"

#include <algorithm>
#include <fstream>

#include <catch2/catch.hpp>

#include "tests/data/llava_set.hpp"
#include "tests/data/read_llava.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kBins = 2;

class AudioField final : public Field {
 public:
  std::string_view word() const override { return "sound"; }
  Shape row_shape() const override { return {kBins}; }
};

/// Reads text files: kBins numbers per frame.
class AudioPreprocessor final : public Preprocessor {
 public:
  std::int64_t LengthOf(const ItemFile& file) const override {
    return std::ssize(NumbersOf(file.name)) / kBins;
  }
  void Read(const ItemFile& file, std::span<float> output) const override {
    const std::vector<float> numbers = NumbersOf(file.name);
    REQUIRE(numbers.size() == output.size());
    std::copy(numbers.begin(), numbers.end(), output.begin());
  }
  std::optional<ImageFacts> Check(const ItemFile& file, bool decode) const override {
    if (decode && NumbersOf(file.name).front() < 0)
      throw std::runtime_error(file.name + ": negative");
    return std::nullopt;
  }

 private:
  static std::vector<float> NumbersOf(const std::string& file) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error(file + ": no such file");
    std::vector<float> numbers;
    for (float number = 0; stream >> number;) numbers.push_back(number);
    return numbers;
  }
};

std::unique_ptr<const Preprocessor> MakeAudio(const Field& field) {
  if (dynamic_cast<const AudioField*>(&field) == nullptr) return nullptr;
  return std::make_unique<AudioPreprocessor>();
}

extern const ModuleKind kAudio;

struct AudioConfig : ModelOf<AudioConfig, kAudio> {
  std::unique_ptr<const Field> field() const override { return std::make_unique<AudioField>(); }
  std::int64_t RowsOf(std::int64_t length) const override { return length / 4; }
  std::int64_t row_width() const override { return 8; }
  friend bool operator==(const AudioConfig&, const AudioConfig&) = default;
};

const ModuleKind kAudio = {"audio",
                           "sound",
                           {},
                           {},
                           [] { return Model(AudioConfig()); },
                           [] { return std::vector<ModelKey>(); }};

/// Row i has i % 3 sounds and the answer i. Where i is odd, an image follows the first sound. No two
/// sounds share a number.
class Sounds {
 public:
  Sounds() {
    static const bool added = (AddPreprocessor(&MakeAudio), true);
    REQUIRE(added);
    std::string rows;
    for (int row = 0; row < 13; ++row) {
      std::string names;
      std::string question;
      for (int j = 0; j < row % 3; ++j) {
        const std::string name = std::to_string(row) + "_" + std::to_string(j) + ".txt";
        std::string text;
        for (const float number : Numbers(row, j)) text += std::to_string(number) + "\n";
        images_.folder().Write(name, text);
        names += (j == 0 ? "\"" : ", \"") + name + "\"";
        question += j == 0 && row % 2 == 1 ? "<sound><image>" : "?<sound>";
      }
      const bool image = question.find("<image>") != question.npos;
      rows += (row == 0 ? "[" : ", ") + std::string("{\"id\": \"r") + std::to_string(row) +
              "\", \"sound\": [" + names + "], " + (image ? "\"image\": \"1_0.png\", " : "") +
              "\"conversations\": [{\"from\": \"human\", \"value\": \"" + question +
              "\"}, {\"from\": \"gpt\", \"value\": \"" + std::to_string(row) + "\"}]}";
    }
    config_ = Disjoint(images_);
    config_.data.train = images_.folder().Write("sounds.json", rows + "]");
    config_.data.held_out.clear();
    ModuleConfig audio;
    audio.name = "audio";
    audio.model = AudioConfig();
    audio.layout.dp = 2;
    audio.ranks = {2, 3};
    audio.input = InputConfig{"sound", "<sound>"};
    config_.modules.push_back(audio);
    config_.edges.push_back({"audio", "language", std::nullopt, 4});
  }

  static std::int64_t Frames(int row, int j) { return 4 + 4 * ((row + j) % 3); }
  static std::vector<float> Numbers(int row, int j) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < Frames(row, j) * kBins; ++i) {
      numbers.push_back(static_cast<float>(100 * (2 * row + j) + i));
    }
    return numbers;
  }
  const ScratchFolder& folder() const { return images_.folder(); }
  Config& config() { return config_; }

 private:
  DataSet images_;
  Config config_;
};

/// That `items` are the sounds of these rows, in order.
void CheckSounds(const FieldItems& items, const std::vector<int>& rows) {
  std::vector<std::int64_t> lengths;
  std::vector<float> numbers;
  for (const int row : rows) {
    for (int j = 0; j < row % 3; ++j) {
      lengths.push_back(Sounds::Frames(row, j));
      const std::vector<float> item = Sounds::Numbers(row, j);
      numbers.insert(numbers.end(), item.begin(), item.end());
    }
  }
  CHECK(items.lengths == lengths);
  CHECK(items.values.shape() == Shape{std::ssize(numbers) / kBins, kBins});
  const auto* begin = items.values.as<float>();
  CHECK(std::vector<float>(begin, begin + items.values.num_elements()) == numbers);
}

std::vector<std::int64_t> SoundRows(const std::vector<int>& rows) {
  std::vector<std::int64_t> counts;
  for (const int row : rows) {
    counts.push_back(0);
    for (int j = 0; j < row % 3; ++j) counts.back() += Sounds::Frames(row, j) / 4;
  }
  return counts;
}

/// That positions are the places of `placeholder`, and as many as are expected.
void CheckPlaces(const Inputs& inputs, const std::string& module, std::int64_t placeholder) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < inputs.tokens.num_elements(); ++i) {
    if (inputs.tokens.as<std::int64_t>()[i] == placeholder) places.push_back(i);
  }
  const Buffer& positions = inputs.positions.at(module);
  const auto* begin = positions.as<std::int64_t>();
  CHECK(std::vector<std::int64_t>(begin, begin + positions.num_rows()) == places);
  CHECK(inputs.expected.at(module).num_rows() == std::ssize(places));
}

TEST_CASE("a placeholder becomes as many tokens as its own item has rows", "[data]") {
  Sounds sounds;
  const SampleFormat format = FormatOf(sounds.config());
  const ReadRows set = ReadLlava(sounds.config().data.train, format.fields);
  // Row 11: a sound of 12 frames, an image, then a sound of 4 frames.
  const Sample sample = BuildSample(set, set.rows.at(11), format);
  const std::vector<std::int64_t> begin = {256, 260, 260, 260, 259, 259, 259, 259, '?', 260, '\n'};
  REQUIRE(sample.tokens.size() > begin.size());
  CHECK(std::equal(begin.begin(), begin.end(), sample.tokens.begin()));
  CHECK(sample.positions[0] == std::vector<std::int64_t>{4, 5, 6, 7});
  CHECK(sample.positions[1] == std::vector<std::int64_t>{1, 2, 3, 9});
}

TEST_CASE("items of different lengths come in the order of samples and placeholders", "[data]") {
  Sounds sounds;
  RowSource source(sounds.config());
  for (std::int64_t microbatch = 0; microbatch < 3; ++microbatch) {
    for (int dp = 0; dp < 2; ++dp) {
      const auto text = source.Load("language", dp, TrainRound(1), microbatch);
      const std::vector<int> rows = RowsOfText(*text);
      CHECK(rows == std::vector<int>{ExpectedRow(1, microbatch * 4 + 2 * dp),
                                     ExpectedRow(1, microbatch * 4 + 2 * dp + 1)});
      CheckPlaces(*text, "vision", 259);
      CheckPlaces(*text, "audio", 260);
      const auto inputs = source.Load("audio", dp, TrainRound(1), microbatch);
      CheckSounds(inputs->fields.at("audio"), rows);
      CHECK(inputs->table == RowTable{{2 * dp, 2 * dp + 1}, SoundRows(rows)});
      CHECK(text->expected.at("audio") == inputs->table);
    }
  }
  const Inputs whole = source.LoadWhole(TrainRound(1));
  const std::vector<int> rows = RowsOfText(whole);
  CheckPlaces(whole, "vision", 259);
  CheckPlaces(whole, "audio", 260);
  CheckSounds(whole.fields.at("audio"), rows);
  const auto num_images =
      std::count_if(rows.begin(), rows.end(), [](int row) { return row % 2 == 1 && row % 3 > 0; });
  CHECK(whole.fields.at("vision").lengths ==
        std::vector<std::int64_t>(static_cast<std::size_t>(num_images), 1));
}

TEST_CASE("files of a field are checked by its preprocessor", "[data]") {
  Sounds sounds;
  const std::string list = sounds.config().data.train;
  sounds.folder().Write("4_0.txt", "-1 2 3 4 5 6 7 8");
  std::filesystem::remove(sounds.folder() / "2_1.txt");
  const SampleFormat format = FormatOf(sounds.config());
  std::vector<std::string> lines;
  RowIndex index(format.fields.size());
  const MeasuredFile counted =
      MeasureFile({list}, format, {.depth = FileDepth::kDecode, .threads = 2}, index,
                  [&](const DataFault& fault) {
                    CHECK(fault.kind == FaultKind::kItem);
                    lines.push_back(FaultLine(list, fault));
                  });
  CHECK(lines ==
        std::vector<std::string>{
            list + ": row 2 (id \"r2\"): " + (sounds.folder() / "2_1.txt") + ": no such file",
            list + ": row 4 (id \"r4\"): " + (sounds.folder() / "4_0.txt") + ": negative"});
  CHECK(counted.files.num_files == 14);  // 12 sounds less the two of row 2, and 4 images
  CHECK(counted.files.formats[static_cast<std::size_t>(ImageFormat::kPng)].count == 4);
}

TEST_CASE("a context that would cut a sound names it", "[data]") {
  Sounds sounds;
  sounds.config().modules[1].As<LlamaConfig>().context = 9;
  const SampleFormat format = FormatOf(sounds.config());
  const ReadRows set = ReadLlava(sounds.config().data.train, format.fields);
  CHECK_THROWS_WITH(BuildSample(set, set.rows.at(11), format),
                    set.file +
                        ": row 11 (id \"r11\"): the context of 9 tokens would cut a sound, "
                        "its last row is token 10");
}

TEST_CASE("a field of a type without a preprocessor is refused", "[data]") {
  class OtherField final : public Field {
    std::string_view word() const override { return "other"; }
    Shape row_shape() const override { return {1}; }
  };
  CHECK_THROWS_AS(MakePreprocessor(OtherField()), std::logic_error);
}

}  // namespace
}  // namespace troupe
