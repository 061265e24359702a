// A data set in LLaVA's form in which no two rows look alike, modules that read it, and what a source
// must then bring.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image.hpp"
#include "data/order/sample_order.hpp"
#include "data/row_source.hpp"
#include "kinds/llama.hpp"
#include "kinds/vit.hpp"
#include "tests/data/scratch_folder.hpp"
#include "tests/data/write_png.hpp"

namespace troupe {

inline constexpr int kImageSize = 4;  // pixels; patches of 2 give 4 rows per image

/// A data set whose every image and every answer is different: row i has i % 3 images, image j of
/// it is filled with grey 10 + 8 * i + 2 * j, and the answer is i times "x" and the row's number.
class DataSet {
 public:
  DataSet() {
    WriteSet("train.json", 0, 13);
    WriteSet("held_out.json", 13, 5);
  }

  static std::uint8_t Grey(int row, int image) {
    return static_cast<std::uint8_t>(10 + 8 * row + 2 * image);
  }
  const ScratchFolder& folder() const { return folder_; }

 private:
  void WriteSet(const std::string& name, int first, int count) {
    std::string text;
    for (int row = first; row < first + count; ++row) {
      std::string images;
      std::string question;
      for (int image = 0; image < row % 3; ++image) {
        const std::string file = std::to_string(row) + "_" + std::to_string(image) + ".png";
        WritePng(folder_ / file,
                 {kImageSize, kImageSize,
                  std::vector<std::uint8_t>(kImageSize * kImageSize * 3, Grey(row, image))});
        images += (image > 0 ? ", \"" : "\"") + file + "\"";
        question += std::string(static_cast<std::size_t>(row), 'q') + "<image>";
      }
      text += (row == first ? "[" : ",") + std::string("{\"id\": \"r") + std::to_string(row) +
              "\", \"image\": [" + images +
              "], \"conversations\": [{\"from\": \"human\", \"value\": \"" + question +
              "\"}, {\"from\": \"gpt\", \"value\": \"" +
              std::string(static_cast<std::size_t>(row), 'x') + std::to_string(row) + "\"}]}";
    }
    folder_.Write(name, text + "]");
  }

  ScratchFolder folder_;
};

inline ModuleConfig Vit(const std::string& name, std::vector<int> ranks, int dp) {
  ModuleConfig module;
  module.name = name;
  module.layout.dp = dp;
  module.ranks = std::move(ranks);
  module.input = InputConfig{};
  VitConfig vit;
  vit.image_size = kImageSize;
  vit.patch_size = 2;
  module.model = vit;
  return module;
}

inline ModuleConfig Llama(std::vector<int> ranks, int tp, int dp) {
  ModuleConfig module;
  module.name = "language";
  module.layout.tp = tp;
  module.layout.dp = dp;
  module.ranks = std::move(ranks);
  LlamaConfig llama;
  llama.vocab = 262;
  llama.context = 200;
  module.model = llama;
  return module;
}

/// `vision` feeds a language model; 3 microbatches of 2 samples per replica.
inline Config MakeConfig(const DataSet& data, const ModuleConfig& vision,
                         const ModuleConfig& language) {
  Config config;
  config.run.seed = 5;
  config.cluster.ranks = 8;
  config.modules = {vision, language};
  config.edges = {{vision.name, language.name, std::nullopt, 4}};
  config.schedule.micro_batch_size = 2;
  config.schedule.microbatches = 3;
  config.data.train = data.folder() / "train.json";
  config.data.held_out = data.folder() / "held_out.json";
  return config;
}

inline Config Disjoint(const DataSet& data) {
  return MakeConfig(data, Vit("vision", {4, 5, 6}, 3), Llama({0, 1}, 1, 2));
}

inline Round TrainRound(std::int64_t step) {
  return {.number = step, .step = step, .microbatches = 3, .place = step * 12, .group = 12};
}
inline Round EvaluationRound(std::int64_t microbatches) { return {9, false, 4, microbatches, 1.0}; }

/// The row that sample k of a training round of step `step` must be, with 12 samples per round.
inline int ExpectedRow(std::int64_t step, std::int64_t k) {
  const std::int64_t place = step * 12 + k;
  return static_cast<int>(SampleOrder(5, place / 13, place % 13, 13));
}

/// Rows of the data set as the answers in `inputs` say them, -1 for an empty sample.
inline std::vector<int> RowsOfText(const Inputs& inputs) {
  std::vector<int> rows;
  const std::int64_t num_tokens = inputs.tokens.shape()[1];
  for (std::int64_t b = 0; b < inputs.tokens.num_rows(); ++b) {
    std::string answer;
    for (std::int64_t t = 0; t < num_tokens; ++t) {
      const std::int64_t label = inputs.labels.as<std::int64_t>()[b * num_tokens + t];
      if (label >= '0' && label <= '9') answer += static_cast<char>(label);
    }
    rows.push_back(answer.empty() ? -1 : std::stoi(answer));
  }
  return rows;
}

/// Grey of every image, as DataSet wrote it.
inline std::vector<int> Greys(const FieldItems& images) {
  std::vector<int> greys;
  for (std::int64_t i = 0; i < images.values.num_rows(); ++i) {
    const float red = images.values.as<float>()[i * 3 * kImageSize * kImageSize];
    greys.push_back(static_cast<int>(std::lround((red * 0.26862954 + 0.48145466) * 255)));
  }
  return greys;
}

/// Grey of an image of zeros: the mean of red.
inline constexpr int kGreyOfZero = 123;

inline std::vector<int> GreysOfRows(const std::vector<int>& rows) {
  std::vector<int> greys;
  for (const int row : rows) {
    for (int image = 0; image < row % 3; ++image) greys.push_back(DataSet::Grey(row, image));
  }
  return greys;
}

inline std::vector<std::int64_t> RowCounts(const std::vector<int>& rows) {
  std::vector<std::int64_t> counts;
  for (const int row : rows) counts.push_back(row < 0 ? 0 : 4 * (row % 3));
  return counts;
}

}  // namespace troupe
