// The part of a kind that computes with libtorch: its body, and its part of the reference.
// kinds/kind.hpp has the pure part. modules/torch/list.cpp names them all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "modules/torch/context_group.hpp"
#include "modules/torch/expert_group.hpp"
#include "modules/torch/parameter_store.hpp"
#include "modules/torch/reference_model.hpp"
#include "modules/torch/stage_body.hpp"
#include "modules/torch/tensor_group.hpp"

namespace troupe {

/// The items of a field in host memory (kinds/field.hpp).
struct FieldTensors {
  at::Tensor values;                  ///< [sum of lengths, row shape...] float32
  std::vector<std::int64_t> lengths;  ///< of each item
};

/// A module that turns items of its field into rows, cut over a tensor-parallel group. It runs as
/// separate stages or inline in the module that it feeds.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// The rows of the first layer, of items that ItemsOf (encoder_body.hpp) gave. First stage only.
  virtual at::Tensor Embed(const FieldTensors& items) const = 0;
  /// The layers of this stage. Throws std::invalid_argument for rows of another shape.
  virtual at::Tensor RunLayers(at::Tensor rows) const = 0;
  /// The rows that leave the module. Last stage only.
  virtual at::Tensor Features(const at::Tensor& rows) const = 0;
  /// The numbers of the rows that RunLayers takes of a sample for which `num_rows` rows leave, among all
  /// rows of the sample there. Empty: all rows, in the order of their numbers.
  virtual std::optional<std::vector<std::int64_t>> RowNumbers(std::int64_t /*num_rows*/) const {
    return std::nullopt;
  }
};

/// The ranks with which a body computes.
struct BodyGroups {
  TensorGroupPtr tensor;
  ContextGroupPtr context = c10::make_intrusive<ContextGroup>();
  ExpertGroupPtr expert = c10::make_intrusive<ExpertGroup>();
};

/// Stage `pp` of `module`; its parameters must be in `store`, which outlives the result.
using EncoderMaker = std::unique_ptr<Encoder> (*)(const ModuleConfig& module, int pp,
                                                  const ParameterStore& store,
                                                  const BodyGroups& groups);
template <class Kind>
std::unique_ptr<Encoder> MakeEncoder(const ModuleConfig& module, int pp,
                                     const ParameterStore& store, const BodyGroups& groups) {
  return std::make_unique<Kind>(module, pp, store, groups);
}

class KeyValueCache;
struct CacheSizes;
struct CachedTokens;

/// A language model that is whole on one device and reads sequences part by part. Records no graph.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual CacheSizes cache_sizes() const = 0;
  virtual std::int64_t context() const = 0;
  /// Rows of `tokens` [M] int64 in host memory. Throws std::invalid_argument naming a token that is
  /// not in the vocabulary.
  virtual at::Tensor EmbedTokens(const at::Tensor& tokens) const = 0;
  /// The layers, of rows [n * T, H] of `tokens`, which see what `cache` holds before them.
  virtual at::Tensor RunLayers(at::Tensor rows, const CachedTokens& tokens,
                               KeyValueCache& cache) const = 0;
  /// Final norm and head of rows [M, H]: [M, V].
  virtual at::Tensor Logits(const at::Tensor& rows) const = 0;
};

using DecoderMaker = std::unique_ptr<Decoder> (*)(const ModuleConfig& module,
                                                  const ParameterStore& store,
                                                  const TensorGroupPtr& group);

using BodyMaker = std::unique_ptr<StageBody> (*)(const Config& config, const ModuleConfig& module,
                                                 int pp, const ParameterStore& store,
                                                 const BodyGroups& groups);

namespace reference {

/// A kind's part of the reference: written for one device from the model's definition, sharing
/// nothing with the body.
struct KindPart {
  /// Adds the module's parameters with their initial values.
  void (*add_parameters)(const ModuleConfig& module, const Maker& make) = nullptr;
  /// An encoder's rows [r, width]; `values` in the type that the reference computes in.
  at::Tensor (*encode)(const FieldTensors& items, const ModuleConfig& module,
                       const Parameters& w) = nullptr;
  TextOutput (*logits)(const TextBatch& batch, const std::vector<Insertion>& insertions,
                       const ModuleConfig& module, const Parameters& w) = nullptr;
};

}  // namespace reference

struct TorchKind {
  const ModuleKind* kind = nullptr;
  EncoderMaker make_encoder = nullptr;  ///< null: not an encoder
  BodyMaker make_body = nullptr;        ///< null: an encoder, whose stages are EncoderBody
  DecoderMaker make_decoder = nullptr;  ///< null: not a language model
  reference::KindPart reference;
};

/// Throws std::invalid_argument naming the module if its kind does not compute.
const TorchKind& TorchKindOf(const ModuleConfig& module);

/// Every kind with a body, in the order of the list.
std::vector<const TorchKind*> TorchKinds();
/// Adds a kind of this program alone, such as one of a test; see AddKind.
void AddTorchKind(const TorchKind& kind);

}  // namespace troupe
