// The configurations of small jobs and their inputs.
#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "tests/torch/job.hpp"

namespace troupe {

Config SmallConfig() {
  Config config;
  config.run.seed = 11;
  config.run.precision = Precision::kFloat64;
  config.cluster.ranks = 2;
  ModuleConfig vision;
  vision.name = "vision";
  vision.ranks = {0};
  VitConfig vit;
  vit.image_size = 8;
  vit.patch_size = 4;
  vit.hidden = 8;
  vit.layers = 4;
  vit.heads = 4;
  vit.mlp_hidden = 12;
  vit.feature_layer = -2;
  vision.model = vit;
  ModuleConfig language;
  language.name = "language";
  language.ranks = {1};
  LlamaConfig llama;
  llama.vocab = 21;
  llama.hidden = 16;
  llama.layers = 3;
  llama.heads = 4;
  llama.kv_heads = 2;
  llama.mlp_hidden = 12;
  llama.context = 16;
  language.model = llama;
  config.modules = {vision, language};
  config.edges = {{.from = "vision", .to = "language", .through = ProjectorConfig{.hidden = 12}}};
  config.optimizer.learning_rate = 1e-2;
  config.optimizer.min_learning_rate = 1e-3;
  config.optimizer.weight_decay = 0.1;
  return config;
}

ModuleConfig& ModuleOf(Config& config, const std::string& name) {
  return *std::ranges::find(config.modules, name, &ModuleConfig::name);
}

void SetLayout(Config& config, const std::string& module, Layout layout) {
  ModuleConfig& found = ModuleOf(config, module);
  found.layout = layout;
  found.ranks.resize(static_cast<std::size_t>(layout.num_ranks()));
  std::iota(found.ranks.begin(), found.ranks.end(), 100 * static_cast<int>(module.size()));
}

namespace {

std::vector<const ModuleConfig*> Encoders(const Config& config) {
  std::vector<const ModuleConfig*> encoders;
  for (const ModuleConfig& module : config.modules) {
    if (module.model->field()) encoders.push_back(&module);
  }
  return encoders;
}

constexpr std::int64_t kTokens = 13;

}  // namespace

Config LanguageAlone(Layout layout, Precision precision) {
  Config config = SmallConfig();
  config.run.precision = precision;
  std::erase_if(config.modules, [](const ModuleConfig& each) { return each.name != "language"; });
  config.edges.clear();
  auto& llama = ModuleOf(config, "language").As<LlamaConfig>();
  llama.vocab = 64;
  llama.hidden = 64;
  llama.layers = 3;
  llama.heads = 4;
  llama.kv_heads = 2;
  llama.mlp_hidden = 176;
  SetLayout(config, "language", layout);
  config.cluster.ranks = layout.num_ranks();
  std::iota(ModuleOf(config, "language").ranks.begin(), ModuleOf(config, "language").ranks.end(),
            0);
  return config;
}

Buffer IntegerBuffer(const std::vector<std::int64_t>& values) {
  Buffer buffer = Buffer::Allocate({static_cast<std::int64_t>(values.size())}, DType::kInt64);
  std::ranges::copy(values, buffer.as<std::int64_t>());
  return buffer;
}

Inputs MakeInputs(const Config& config, const std::vector<int>& images_per_sample, int seed,
                  bool labelled) {
  Inputs inputs;
  const auto num_samples = static_cast<std::int64_t>(images_per_sample.size());
  inputs.tokens = Buffer::Allocate({num_samples, kTokens}, DType::kInt64);
  inputs.labels = Buffer::Allocate({num_samples, kTokens}, DType::kInt64);
  inputs.content = Buffer::Allocate({num_samples, kTokens}, DType::kUInt8);
  for (std::int64_t i = 0; i < num_samples * kTokens; ++i) {
    inputs.tokens.as<std::int64_t>()[i] = (i * 7 + seed * 5 + i / 4) % 21;
    const bool valid = labelled && i % kTokens > 8 && (i + seed) % 5 != 0;
    inputs.labels.as<std::int64_t>()[i] = valid ? (i * 11 + seed) % 21 : -100;
    inputs.content.as<std::uint8_t>()[i] = i % 3 == 0;
  }
  std::int64_t first_position = 0;
  for (const ModuleConfig* encoder : Encoders(config)) {
    const std::int64_t rows = encoder->model->RowsOf(1);
    const int count = std::accumulate(images_per_sample.begin(), images_per_sample.end(), 0);
    Shape shape = encoder->model->field()->row_shape();
    shape.insert(shape.begin(), count);
    Buffer images = Buffer::Allocate(shape, DType::kFloat32);
    for (std::int64_t i = 0; i < images.num_elements(); ++i) {
      images.as<float>()[i] =
          static_cast<float>(std::sin(0.37 * static_cast<double>(i + first_position) + seed));
    }
    std::vector<std::int64_t> positions;
    for (std::int64_t sample = 0; sample < num_samples; ++sample) {
      const auto place = static_cast<std::size_t>(sample);
      const std::int64_t sample_rows = images_per_sample[place] * rows;
      inputs.table.samples.push_back(sample);
      inputs.table.rows.push_back(sample_rows);
      for (std::int64_t row = 0; row < sample_rows; ++row) {
        positions.push_back(sample * kTokens + first_position + row);
      }
    }
    inputs.fields[encoder->name] = {images,
                                    std::vector<std::int64_t>(static_cast<std::size_t>(count), 1)};
    inputs.positions[encoder->name] = IntegerBuffer(positions);
    if (encoder->model->tile_side() > 0) {  // one after the rows of two images
      std::vector<std::int64_t> newlines;
      for (std::int64_t sample = 0; sample < num_samples; ++sample) {
        if (images_per_sample[static_cast<std::size_t>(sample)] == 0) continue;
        newlines.push_back(sample * kTokens + 8);
      }
      inputs.newlines[encoder->name] = IntegerBuffer(newlines);
    }
    first_position += 4;
  }
  return inputs;
}

Inputs Slice(const Config& config, const Inputs& whole, std::size_t begin, std::size_t end) {
  Inputs part;
  const auto first = static_cast<std::int64_t>(begin);
  const auto last = static_cast<std::int64_t>(end);
  part.tokens = whole.tokens.Rows(first, last);
  part.labels = whole.labels.Rows(first, last);
  part.content = whole.content.Rows(first, last);
  for (std::int64_t sample = first; sample < last; ++sample) {
    part.table.samples.push_back(sample);
    part.table.rows.push_back(part.tokens.shape()[1]);
  }
  if (first == 0 && last == whole.tokens.shape()[0]) {
    part.fields = whole.fields;
    part.positions = whole.positions;
    part.newlines = whole.newlines;
    return part;
  }
  for (const ModuleConfig* encoder : Encoders(config)) {
    std::int64_t before = 0;
    const auto in_part = [&](const Buffer& all) {
      std::vector<std::int64_t> positions;
      before = 0;
      for (std::int64_t i = 0; i < all.num_elements(); ++i) {
        const std::int64_t position = all.as<std::int64_t>()[i];
        if (position < 0) throw std::invalid_argument("a slice has no rows that are left out");
        if (position < first * kTokens) ++before;
        if (position >= first * kTokens && position < last * kTokens) {
          positions.push_back(position - first * kTokens);
        }
      }
      return positions;
    };
    const auto newlines = whole.newlines.find(encoder->name);
    if (newlines != whole.newlines.end()) {
      part.newlines[encoder->name] = IntegerBuffer(in_part(newlines->second));
    }
    const std::vector<std::int64_t> positions = in_part(whole.positions.at(encoder->name));
    const std::int64_t rows = encoder->model->RowsOf(1);
    const auto count = static_cast<std::int64_t>(positions.size()) / rows;
    part.fields[encoder->name] = {
        whole.fields.at(encoder->name).values.Rows(before / rows, before / rows + count),
        std::vector<std::int64_t>(static_cast<std::size_t>(count), 1)};
    part.positions[encoder->name] = IntegerBuffer(positions);
  }
  return part;
}

}  // namespace troupe
