#include "tests/torch/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "checkpoint/weights_folder.hpp"
#include "configs/loader.hpp"
#include "data/images/tiles.hpp"
#include "models/model_folder.hpp"
#include "modules/gradient_clip.hpp"
#include "plan/stage_parts.hpp"
#include "tests/data/scratch_folder.hpp"

namespace troupe::oracle {

std::string FolderOf(const std::string& family) {
  return std::filesystem::absolute("tests/oracle/" + family).string();
}

Config Load(const std::string& family, std::string toml) {
  const std::string word = "hf:FAMILY";
  for (std::size_t at; (at = toml.find(word)) != std::string::npos;) {
    toml.replace(at, word.size(), "hf:" + FolderOf(family));
  }
  const ScratchFolder folder;
  return LoadConfig(folder.Write("run.toml",
                                 "run.precision = \"float64\"\n" + toml +
                                     "\n[data]\ntrain = \"none.json\"\n"
                                     "tokenizer = \"sentencepiece:none.model\"\n"
                                     "[optimizer]\nlearning_rate = 0.01\nmin_learning_rate = 0.01\n"
                                     "betas = [0.9, 0.95]\nepsilon = 1e-8\nweight_decay = 0.1\n"))
      .config;
}

void ReadAllWeights(Job& job, const Config& config) {
  for (const ModuleConfig& module : config.modules) {
    if (module.inline_in) continue;
    for (int dp = 0; dp < module.layout.dp; ++dp) {
      for (int pp = 0; pp < module.layout.pp; ++pp) {
        for (int tp = 0; tp < module.layout.tp; ++tp) {
          StageProgram& program = job.Program(module.name, pp, dp, tp);
          const auto pieces = program.Tensors(TensorKind::kParameter);
          ReadWeights(config, pieces);
          program.SetTensors(TensorKind::kParameter, pieces);
        }
      }
    }
  }
}

std::vector<double> Expected::Numbers(const std::string& name) const {
  const Buffer buffer = Read(name);
  const auto* values = buffer.as<double>();
  return {values, values + buffer.num_elements()};
}

Values Expected::Of(const Config& config, const std::string& kind, const Values& own) const {
  const auto has = [&](const std::string& name) {
    return file_.Find(kind + "/" + name) != nullptr;
  };
  Values found;
  for (const auto& [name, values] : own) {
    const std::string part = name.substr(0, name.find('.'));
    const std::string rest = name.substr(part.size() + 1);
    if (const ModuleConfig* const module = config.Find(part)) {
      const std::string foreign = NameIn(*FindNames(module->model.kind(), has), rest);
      found[name] = Numbers(kind + "/" + SpelledFor(*module->model, foreign));
      continue;
    }
    const EdgeConfig& edge = *std::ranges::find(config.edges, part, ProjectorName);
    found[name] = Numbers(kind + "/" + ForeignProjectorName(edge.through->kind, rest, has).value());
  }
  return found;
}

/// The places of image `number`: of one square, or of tiles as tools/oracle/tiles.py cuts them.
static ItemPlaces PlacesOfImage(const Expected& expected, std::size_t number) {
  constexpr std::int64_t kPixels = 8;  // along a side of a tile
  constexpr std::int64_t kRows = 2;
  if (!expected.Has("sizes")) return PlacesInOrder(1, kRows * kRows);
  const Buffer sizes = expected.Read("sizes");
  const auto* const size = sizes.as<std::int64_t>() + 2 * number;
  const std::vector<TileGrid> grids = {{1, 2}, {2, 1}, {2, 2}, {3, 1}};
  const PixelSize image{size[0], size[1]};
  return PlacesOfTiles(image, ChooseGrid(image, kPixels, grids), kRows);
}

PlacedImages ImagesFor(const std::string& family, std::span<const std::int64_t> tokens) {
  const Expected expected(family);
  PlacedImages found;
  std::int64_t length = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (tokens[t] != kImageToken) continue;
    const ItemPlaces places = PlacesOfImage(expected, found.items.lengths.size());
    const auto first = static_cast<std::int64_t>(t);
    for (const std::int64_t place : places.rows) {
      found.positions.push_back(place < 0 ? -1 : first + place);
    }
    for (const std::int64_t place : places.newlines) found.newlines.push_back(first + place);
    found.items.lengths.push_back(places.length);
    length += places.length;
    t += static_cast<std::size_t>(places.num_tokens) - 1;
  }
  if (length == 0) return found;
  const Buffer images = expected.Read("images");
  Shape shape = images.shape();
  shape[0] = length;
  found.items.values = Buffer::Wrap(images.owner(), images.data(), shape, images.dtype());
  return found;
}

static Buffer BufferOf(const std::vector<std::int64_t>& numbers) {
  Buffer buffer = Buffer::Allocate({std::ssize(numbers)}, DType::kInt64);
  std::ranges::copy(numbers, buffer.as<std::int64_t>());
  return buffer;
}

Inputs InputsOf(const std::string& family) {
  const Expected expected(family);
  Inputs inputs;
  inputs.tokens = expected.Read("tokens");
  inputs.labels = expected.Read("labels");
  inputs.content = Buffer::Zeros(inputs.labels.shape(), DType::kUInt8);
  const std::int64_t samples = inputs.tokens.shape()[0];
  for (std::int64_t i = 0; i < samples; ++i) {
    inputs.table.samples.push_back(i);
    inputs.table.rows.push_back(0);
  }
  if (!expected.Has("images")) return inputs;
  const std::span tokens(inputs.tokens.as<std::int64_t>(),
                         static_cast<std::size_t>(inputs.tokens.num_elements()));
  const std::int64_t length = inputs.tokens.shape()[1];
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != kImageToken) continue;
    ++inputs.table.rows[i / static_cast<std::size_t>(length)];
  }
  PlacedImages images = ImagesFor(family, tokens);
  inputs.fields["vision"] = std::move(images.items);
  inputs.positions["vision"] = BufferOf(images.positions);
  if (expected.Has("sizes")) inputs.newlines["vision"] = BufferOf(images.newlines);
  return inputs;
}

Trained FiveSteps(Job& job, const Inputs& inputs) {
  Trained trained;
  const auto* labels = inputs.labels.as<std::int64_t>();
  const auto num_labels = static_cast<double>(std::count_if(
      labels, labels + inputs.labels.num_elements(), [](auto label) { return label != -100; }));
  for (int step = 1; step <= 5; ++step) {
    trained.losses.push_back(job.Train({inputs}, 1.0 / num_labels).loss / num_labels);
    const GradientClip clip = ClipOf({job.ReduceGradients()}, 1.0);
    trained.norms.push_back(clip.norm);
    job.Update({.step = step, .clip_coefficient = clip.coefficient, .schedule = 1.0});
  }
  return trained;
}

}  // namespace troupe::oracle
