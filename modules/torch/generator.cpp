#include "modules/torch/generator.hpp"

#include <ATen/core/grad_mode.h>
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "modules/torch/encoder_body.hpp"
#include "modules/torch/key_value_cache.hpp"
#include "modules/torch/placed_rows.hpp"
#include "modules/torch/projector.hpp"
#include "modules/torch/short_errors.hpp"
#include "modules/torch/tensors.hpp"
#include "modules/torch/torch_kind.hpp"
#include "transport/communicator.hpp"

namespace troupe {
namespace {

/// Tokens of a prompt that pass the layers at once: enough for fast products, few enough that their
/// scores stay small.
constexpr std::int64_t kPromptPart = 256;

/// In the order of layers, so that a layer's weights are neighbours.
std::vector<ParameterSpec> OrderedParameters(const Config& config) {
  std::vector<ParameterSpec> specs;
  for (const ModuleConfig& module : config.modules) {
    for (ParameterSpec& spec : StageParameters(config, module.name, 0)) {
      specs.push_back(std::move(spec));
    }
  }
  return specs;
}

const ModuleConfig& LanguageOf(const Config& config) {
  const ModuleConfig* language = nullptr;
  for (const ModuleConfig& module : config.modules) {
    if (TorchKindOf(module).make_decoder == nullptr) continue;
    if (language != nullptr) {
      throw std::invalid_argument("expected one language model, got " + language->name + " and " +
                                  module.name);
    }
    language = &module;
  }
  if (language == nullptr) throw std::invalid_argument("expected a language model, got none");
  return *language;
}

/// An encoder with all of its layers, and the projector behind it.
struct WholeEncoder {
  ModuleConfig module;
  std::unique_ptr<Encoder> encoder;
  std::optional<Projector> projector;
  at::Tensor newline;  ///< [H], where its images are cut into tiles
};

class TorchGenerator final : public Generator {
 public:
  TorchGenerator(const Config& config, const Numerics& numerics)
      : communicator_(std::move(MakeLocalGroup(1, nullptr).front())),
        group_(c10::make_intrusive<TensorGroup>(*communicator_)),
        store_(FlatLayout(OrderedParameters(config), {}, {}, {}), config.run.seed, numerics),
        name_(LanguageOf(config).name),
        decoder_(TorchKindOf(LanguageOf(config)).make_decoder(LanguageOf(config), store_, group_)),
        cache_(decoder_->cache_sizes(), numerics.options()) {
    for (const EdgeConfig& edge : config.edges) {
      if (edge.to != name_) continue;
      WholeEncoder& source = encoders_.emplace_back();
      source.module = FindModule(config, edge.from);
      source.encoder = TorchKindOf(source.module)
                           .make_encoder(source.module, 0, store_,
                                         {group_, c10::make_intrusive<ContextGroup>()});
      if (edge.through) source.projector.emplace(edge, store_, group_);
      if (HasNewline(config, edge)) source.newline = store_.Leaf(NewlineName(edge));
    }
  }

  std::vector<TensorPiece> Parameters() override { return store_.Pieces(TensorKind::kParameter); }

  void SetParameters(const std::vector<TensorPiece>& parameters) override {
    store_.SetPieces(name_, TensorKind::kParameter, parameters);
  }

  std::int64_t context() const override { return decoder_->context(); }

  Buffer Begin(const Prompt& prompt) override {
    const auto length = std::ssize(prompt.tokens);
    if (length < 1 || length > context()) {
      throw std::invalid_argument(name_ + ": expected 1 to " + std::to_string(context()) +
                                  " tokens of a prompt, got " + std::to_string(length));
    }
    return WithShortErrors(name_, [&] {
      const at::NoGradGuard no_graph;
      const at::Tensor rows = RowsOf(prompt);
      cache_.Add();
      at::Tensor part;
      for (std::int64_t begin = 0; begin < length; begin += kPromptPart) {
        const std::int64_t count = std::min(kPromptPart, length - begin);
        part = decoder_->RunLayers(rows.narrow(0, begin, count),
                                   cache_.Append(cache_.num_sequences() - 1, 1, count), cache_);
      }
      return LogitsOf(part.narrow(0, part.size(0) - 1, 1));
    });
  }

  Buffer Extend(std::span<const std::int64_t> tokens) override {
    if (std::ssize(tokens) != cache_.num_sequences()) {
      throw std::invalid_argument(name_ + ": expected " + std::to_string(cache_.num_sequences()) +
                                  " tokens, got " + std::to_string(tokens.size()));
    }
    return WithShortErrors(name_, [&] {
      const at::NoGradGuard no_graph;
      const at::Tensor rows = decoder_->EmbedTokens(AsHostTensor(tokens));
      return LogitsOf(decoder_->RunLayers(rows, cache_.Append(0, std::ssize(tokens), 1), cache_));
    });
  }

  void End(std::int64_t number) override { cache_.Remove(number); }

 private:
  static at::Tensor AsHostTensor(std::span<const std::int64_t> values) {
    const at::Tensor tensor = at::empty({std::ssize(values)}, at::kLong);
    std::ranges::copy(values, tensor.data_ptr<std::int64_t>());
    return tensor;
  }

  /// Rows [T, H] of the tokens of a prompt, those of encoders in their places.
  at::Tensor RowsOf(const Prompt& prompt) const {
    at::Tensor rows = decoder_->EmbedTokens(AsHostTensor(prompt.tokens));
    for (const PromptItems& items : prompt.items) {
      const auto source = std::ranges::find(
          encoders_, items.encoder, [](const WholeEncoder& each) { return each.module.name; });
      if (source == encoders_.end()) {
        throw std::invalid_argument(name_ + ": expected items of its encoders, got some of " +
                                    items.encoder);
      }
      rows = PlaceEncoderRows(std::move(rows), Encoded(*source, items.items), source->newline,
                              {AsHostTensor(items.positions), AsHostTensor(items.newlines)}, name_,
                              items.encoder);
    }
    return rows;
  }

  static at::Tensor Encoded(const WholeEncoder& source, const FieldItems& items) {
    Inputs inputs;
    inputs.fields[source.module.name] = items;
    const Encoder& encoder = *source.encoder;
    const at::Tensor rows =
        encoder.Features(encoder.RunLayers(encoder.Embed(ItemsOf(inputs, source.module))));
    return source.projector ? source.projector->Forward(rows) : rows;
  }

  Buffer LogitsOf(const at::Tensor& rows) const {
    return AsBuffer(decoder_->Logits(rows).to(at::kCPU, at::kDouble));
  }

  std::unique_ptr<Communicator> communicator_;
  TensorGroupPtr group_;
  ParameterStore store_;
  std::string name_;  ///< of the language model
  std::unique_ptr<Decoder> decoder_;
  std::vector<WholeEncoder> encoders_;
  KeyValueCache cache_;
};

}  // namespace

std::unique_ptr<Generator> MakeGenerator(const Config& config, TorchOptions options) {
  return WithShortErrors("model", [&] {
    return std::make_unique<TorchGenerator>(config, NumericsOf(config.run.precision, options));
  });
}

}  // namespace troupe
