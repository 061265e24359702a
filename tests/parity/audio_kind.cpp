// A kind of module that lives in this test alone: it reads sound, a field of which every item has
// its own length, and gives a row for every four frames. Nothing outside tests/ knows it.
//   file      text: kBins numbers per frame
//   rows      Linear(4 frames) + the mean of that over the item; then layers x + fc2(gelu(fc1(x)))
#include "tests/parity/audio_kind.hpp"

#include <fstream>
#include <torch/types.h>

#include "data/images/preprocessor.hpp"
#include "modules/torch/encoder_layers.hpp"
#include "modules/torch/torch_kind.hpp"
#include "plan/layer_split.hpp"

namespace troupe {
namespace {

using at::Tensor;

constexpr std::int64_t kBins = 3;
constexpr std::int64_t kStride = 4;

class AudioField final : public Field {
 public:
  std::string_view word() const override { return "audio"; }
  Shape row_shape() const override { return {kBins}; }
};

class AudioPreprocessor final : public Preprocessor {
 public:
  std::int64_t LengthOf(const ItemFile& file) const override {
    return std::ssize(NumbersOf(file.name)) / kBins;
  }
  void Read(const ItemFile& file, std::span<float> output) const override {
    const std::vector<float> numbers = NumbersOf(file.name);
    std::copy_n(numbers.begin(), output.size(), output.begin());
  }
  std::optional<ImageFacts> Check(const ItemFile& file, bool) const override {
    static_cast<void>(NumbersOf(file.name));
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

std::unique_ptr<const Preprocessor> MakePreprocessorOfAudio(const Field& field) {
  if (dynamic_cast<const AudioField*>(&field) == nullptr) return nullptr;
  return std::make_unique<AudioPreprocessor>();
}

extern const ModuleKind kAudio;

struct AudioConfig : ModelOf<AudioConfig, kAudio> {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;

  std::string WhyNotFrom(const ModelConfig&) const override { return "reads sound"; }
  std::unique_ptr<const Field> field() const override { return std::make_unique<AudioField>(); }
  std::int64_t RowsOf(std::int64_t length) const override { return length / kStride; }
  std::int64_t rows_per_item() const override { return 6; }
  std::int64_t row_width() const override { return hidden; }
  std::optional<Layers> split_layers() const override { return Layers{layers}; }
  void AddParameters(const StagePlace& stage, ParameterList& list) const override {
    if (stage.first) list.AddWeight("frames", hidden, kStride * kBins, Cut::kNone);
    for (std::int64_t i = stage.layers.begin; i < stage.layers.end; ++i) {
      const std::string layer = "layers." + std::to_string(i);
      list.AddWeight(layer + ".fc1", 2 * hidden, hidden, Cut::kRows);
      list.AddBias(layer + ".fc1", 2 * hidden, Cut::kRows);
      list.AddWeight(layer + ".fc2", hidden, 2 * hidden, Cut::kColumns);
      list.AddBias(layer + ".fc2", hidden);
    }
  }
  friend bool operator==(const AudioConfig&, const AudioConfig&) = default;
};

const ModuleKind kAudio = {
    .word = "audio",
    .meaning = "sound, of a test",
    .other_words = {},
    .similar_words = {},
    .make = [] { return Model(AudioConfig()); },
    .keys =
        [] {
          return std::vector<ModelKey>{
              {"hidden", &AudioConfig::hidden, kRequired, kCount, "Width of a row."},
              {"layers", &AudioConfig::layers, kRequired, kLayers, "Layers."}};
        }};

/// Whole groups of kStride frames of every item, [rows, kStride * kBins], and the rows of each.
std::pair<Tensor, std::vector<std::int64_t>> Groups(const FieldTensors& items) {
  std::vector<Tensor> groups = {items.values.new_zeros({0, kStride * kBins})};
  std::vector<std::int64_t> rows;
  std::int64_t begin = 0;
  for (const std::int64_t length : items.lengths) {
    rows.push_back(length / kStride);
    groups.push_back(
        items.values.narrow(0, begin, rows.back() * kStride).reshape({-1, kStride * kBins}));
    begin += length;
  }
  return {at::cat(groups), rows};
}

class Audio : public Encoder {
 public:
  Audio(const ModuleConfig& module, int pp, const ParameterStore& store, const BodyGroups& groups)
      : type_(store.numerics().type), group_(groups.tensor) {
    if (pp == 0) frames_ = {.weight = store.Leaf(module.name + ".frames.weight"), .bias = {}};
    const Interval layers = PlaceOf(module, pp).layers;
    for (std::int64_t i = layers.begin; i < layers.end; ++i) {
      const std::string layer = module.name + ".layers." + std::to_string(i);
      layers_.emplace_back(LoadLinear(layer + ".fc1", store), LoadLinear(layer + ".fc2", store));
    }
  }

  Tensor Embed(const FieldTensors& items) const override {
    const auto [groups, rows] = Groups(items);
    const Tensor x = Linear(groups.to(type_), frames_, LinearCut::kNone, group_);
    std::vector<Tensor> means = {x.narrow(0, 0, 0)};
    for (const Tensor& item : x.split_with_sizes(rows)) {
      if (item.size(0) > 0) means.push_back(item.mean(0, /*keepdim=*/true).expand_as(item));
    }
    return x + at::cat(means);
  }
  Tensor RunLayers(Tensor rows) const override {
    for (const auto& [fc1, fc2] : layers_) {
      const Tensor wide = at::gelu(Linear(rows, fc1, LinearCut::kOutputs, group_));
      rows = rows + Linear(wide, fc2, LinearCut::kInputs, group_);
    }
    return rows;
  }
  Tensor Features(const Tensor& rows) const override { return rows; }

 private:
  at::ScalarType type_;
  TensorGroupPtr group_;
  LinearWeights frames_;
  std::vector<std::pair<LinearWeights, LinearWeights>> layers_;
};

void AddParameters(const ModuleConfig& module, const reference::Maker& make) {
  const auto& audio = module.As<AudioConfig>();
  make.Linear(module.name + ".frames", audio.hidden, kStride * kBins, /*bias=*/false);
  for (std::int64_t i = 0; i < audio.layers; ++i) {
    const std::string layer = module.name + ".layers." + std::to_string(i);
    make.Linear(layer + ".fc1", 2 * audio.hidden, audio.hidden, /*bias=*/true);
    make.Linear(layer + ".fc2", audio.hidden, 2 * audio.hidden, /*bias=*/true);
  }
}

/// Item by item, row by row.
Tensor Encode(const FieldTensors& items, const ModuleConfig& module,
              const reference::Parameters& w) {
  const auto& audio = module.As<AudioConfig>();
  std::vector<Tensor> all = {items.values.new_zeros({0, audio.hidden})};
  std::int64_t frame = 0;
  for (const std::int64_t length : items.lengths) {
    std::vector<Tensor> rows;
    for (std::int64_t begin = frame; begin + kStride <= frame + length; begin += kStride) {
      const Tensor numbers = items.values.narrow(0, begin, kStride).flatten();
      rows.push_back(at::mv(w.at(module.name + ".frames.weight").value, numbers));
    }
    frame += length;
    if (rows.empty()) continue;
    const Tensor item = at::stack(rows);
    all.push_back(item + item.sum(0) / static_cast<double>(rows.size()));
  }
  Tensor x = at::cat(all);
  for (std::int64_t i = 0; i < audio.layers; ++i) {
    const std::string layer = module.name + ".layers." + std::to_string(i);
    x = x + reference::Linear(at::gelu(reference::Linear(x, w, layer + ".fc1")), w, layer + ".fc2");
  }
  return x;
}

const TorchKind kTorchAudio = {
    .kind = &kAudio,
    .make_encoder = MakeEncoder<Audio>,
    .make_body = nullptr,
    .reference = {.add_parameters = AddParameters, .encode = Encode, .logits = nullptr}};

}  // namespace

void AddAudioKind() {
  static const bool added = [] {
    AddKind(kAudio);
    AddTorchKind(kTorchAudio);
    AddPreprocessor(MakePreprocessorOfAudio);
    return true;
  }();
  static_cast<void>(added);
}

std::vector<std::string> KindsWithBody() {
  std::vector<std::string> words;
  for (const TorchKind* kind : TorchKinds()) words.emplace_back(kind->kind->word);
  return words;
}

std::string AudioFile(int number, int frames) {
  std::string text;
  for (int i = 0; i < frames * kBins; ++i) {
    // Distinct for every number, frame and bin.
    text += std::to_string(0.01 * ((7 * i + 13 * number) % 101) - 0.003 * number) + "\n";
  }
  return text;
}

}  // namespace troupe
