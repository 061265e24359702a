// Pre-norm transformer layers without a mask, as in vision encoders: LayerNorm, attention,
// LayerNorm, an MLP of two linears. Kinds with such layers share this description.
#pragma once

#include <cstdint>
#include <string>

#include "kinds/kind.hpp"

namespace troupe {

struct EncoderSizes {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_hidden = 0;
  std::int64_t layers = 0;  ///< of the whole model; determines the standard deviation
};

/// Adds the parameters of one layer. Each name follows `prefix` and ".".
void AddEncoderLayer(const EncoderSizes& sizes, const std::string& prefix, ParameterList& list);

/// Counts the products of `layers` layers on `sequences` sequences of `length` rows.
void CountEncoderLayers(const EncoderSizes& sizes, std::int64_t layers, std::int64_t sequences,
                        std::int64_t length, FlopCounter& count);

/// Returns the elements that `layers` layers keep for sequences of `length` rows, one per sample.
/// Each layer keeps two norm inputs and outputs, q k v, the attention weights, and the MLP's two
/// wide rows.
std::int64_t KeptOfEncoderLayers(const EncoderSizes& sizes, std::int64_t layers,
                                 std::int64_t length, const RankWork& work);

/// Reports an error unless heads divide the width, and tp divides heads and the MLP's width.
void CheckEncoderSizes(const EncoderSizes& sizes, ModuleCheck& check);

/// Returns the cost of an embedding of `inputs` numbers per row, relative to a layer.
ExtraCosts EmbeddingCost(const EncoderSizes& sizes, std::int64_t inputs);

}  // namespace troupe
