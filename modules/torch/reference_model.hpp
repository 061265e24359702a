// What the reference computes, as functions of its parameters.
// Only the reference's own files include this: it brings libtorch.
// B samples, T tokens, n images, S pixels, H hidden, V vocabulary.
#pragma once

#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "modules/torch/reference_parameters.hpp"

namespace troupe::reference {

/// images [n, 3, S, S] -> rows [n * rows_per_image, H], image by image.
at::Tensor Vit(const at::Tensor& images, const ModuleConfig& module, const Parameters& w);

/// rows [r, H of the source] -> [r, H of the destination]
at::Tensor Project(const at::Tensor& rows, const EdgeConfig& edge, const Parameters& w);

/// Rows [r, H] that stand in the place of the embeddings at positions [r], b * T + t.
struct Insertion {
  at::Tensor rows;
  at::Tensor positions;
};

/// tokens [B, T] -> logits [B * T, V]
at::Tensor Llama(const at::Tensor& tokens, const std::vector<Insertion>& insertions,
                 const ModuleConfig& module, const Parameters& w);

}  // namespace troupe::reference
