// A model and a batch that are small enough for differences and large enough to tell rows apart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/llama.hpp"
#include "kinds/vit.hpp"
#include "modules/initial_values.hpp"
#include "modules/stage_program.hpp"

namespace troupe::fixture {

inline ModuleConfig Encoder(const std::string& name, std::int64_t hidden) {
  ModuleConfig module;
  module.name = name;
  module.input = InputConfig{name, "<" + name + ">"};
  VitConfig vit;
  vit.image_size = 4;
  vit.patch_size = 2;
  vit.hidden = hidden;
  vit.layers = 3;
  vit.heads = 2;
  vit.mlp_hidden = 7;
  vit.feature_layer = -2;
  module.model = vit;
  return module;
}

inline ModuleConfig Language(const std::string& name, std::int64_t hidden) {
  ModuleConfig module;
  module.name = name;
  LlamaConfig llama;
  llama.vocab = 13;
  llama.hidden = hidden;
  llama.layers = 2;
  llama.heads = 4;
  llama.kv_heads = 2;
  llama.mlp_hidden = 10;
  llama.context = 16;
  module.model = llama;
  return module;
}

inline EdgeConfig Edge(const std::string& from, const std::string& to, ProjectorEnd on) {
  EdgeConfig edge;
  edge.from = from;
  edge.to = to;
  edge.through = ProjectorConfig{.hidden = 9, .on = on};
  return edge;
}

/// vision -> language, in float64.
inline Config Tiny() {
  Config config;
  config.run.precision = Precision::kFloat64;
  config.run.seed = 5;
  config.run.steps = 10;
  config.modules = {Encoder("vision", 6), Language("language", 16)};
  config.edges = {Edge("vision", "language", ProjectorEnd::kFrom)};
  return config;
}

/// The same with a second encoder, which has no projector.
inline Config TwoEncoders() {
  Config config = Tiny();
  config.modules.push_back(Encoder("depth", 16));
  EdgeConfig edge;
  edge.from = "depth";
  edge.to = "language";
  config.edges.push_back(edge);
  return config;
}

inline Buffer Normal(const Shape& shape, DType dtype, const std::string& name) {
  Buffer buffer = Buffer::Allocate(shape, dtype);
  const std::uint64_t key = ParameterKey(77, name);
  for (std::int64_t i = 0; i < buffer.num_elements(); ++i) {
    const float value = NormalAt(key, static_cast<std::uint64_t>(i));
    if (dtype == DType::kFloat32) {
      buffer.as<float>()[i] = value;
    } else {
      buffer.as<double>()[i] = static_cast<double>(value);
    }
  }
  return buffer;
}

/// How many images of an encoder each sample has.
using ImageCounts = std::map<std::string, std::vector<int>>;

/// 16 tokens per sample. Images stand one behind the other from token 1, a word after each; the
/// tokens they replace and every seventh other have no label.
inline Inputs Batch(const Config& config, const ImageCounts& counts) {
  constexpr std::int64_t kTokens = 16;
  const auto samples = static_cast<std::int64_t>(counts.begin()->second.size());
  Inputs inputs;
  inputs.tokens = Buffer::Allocate({samples, kTokens}, DType::kInt64);
  inputs.labels = Buffer::Allocate({samples, kTokens}, DType::kInt64);
  inputs.content = Buffer::Allocate({samples, kTokens}, DType::kUInt8);
  for (std::int64_t i = 0; i < samples * kTokens; ++i) {
    inputs.tokens.as<std::int64_t>()[i] = (i * i + 5 * i + 3) % 13;
    inputs.labels.as<std::int64_t>()[i] = i % 7 == 6 ? -100 : (i * i + 7 * i + 9) % 13;
    inputs.content.as<std::uint8_t>()[i] = i % 3 == 0;
  }
  std::vector<std::int64_t> cursor(static_cast<std::size_t>(samples), 1);
  for (const auto& [encoder, of_samples] : counts) {
    const auto& vit = config.Find(encoder)->As<VitConfig>();
    std::vector<std::int64_t> positions;
    std::int64_t images = 0;
    for (std::size_t b = 0; b < of_samples.size(); ++b) {
      for (int image = 0; image < of_samples[b]; ++image, ++images, ++cursor[b]) {
        for (std::int64_t row = 0; row < vit.rows_per_item(); ++row, ++cursor[b]) {
          positions.push_back(static_cast<std::int64_t>(b) * kTokens + cursor[b]);
          inputs.labels.as<std::int64_t>()[positions.back()] = -100;
        }
      }
    }
    inputs.fields[encoder] = {
        Normal({images, 3, vit.image_size, vit.image_size}, DType::kFloat32, encoder),
        std::vector<std::int64_t>(static_cast<std::size_t>(images), 1)};
    Buffer& target = inputs.positions[encoder];
    target = Buffer::Allocate({static_cast<std::int64_t>(positions.size())}, DType::kInt64);
    for (std::size_t i = 0; i < positions.size(); ++i) target.as<std::int64_t>()[i] = positions[i];
  }
  return inputs;
}

/// The float64 tensors `pieces` + `amount` * noise, so that no bias is 0 and no norm weight 1.
inline std::vector<TensorPiece> Perturbed(const std::vector<TensorPiece>& pieces, double amount) {
  std::vector<TensorPiece> result = pieces;
  for (TensorPiece& piece : result) {
    const Buffer old = piece.value;
    const Buffer noise = Normal(piece.global_shape, DType::kFloat64, piece.name);
    piece.value = Buffer::Allocate(piece.global_shape, DType::kFloat64);
    for (std::int64_t i = 0; i < noise.num_elements(); ++i) {
      piece.value.as<double>()[i] = old.as<double>()[i] + amount * noise.as<double>()[i];
    }
  }
  return result;
}

}  // namespace troupe::fixture
