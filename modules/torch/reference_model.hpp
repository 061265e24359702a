// The functions of the reference: plain functions of its parameters, which the kinds' parts of the
// reference combine. Only files of the reference use them.
// n images or samples, T rows or tokens of each, H hidden, D = H / heads.
#pragma once

#include <cstdint>
#include <string>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "kinds/patch_encoder.hpp"
#include "modules/torch/reference_parameters.hpp"

namespace troupe {

class ExpertChoices;

}  // namespace troupe

namespace troupe::reference {

/// With a bias where there is a parameter `name`.bias, and an adapter where there is one.
at::Tensor Linear(const at::Tensor& x, const Parameters& w, const std::string& name);
at::Tensor LayerNorm(const at::Tensor& x, const Parameters& w, const std::string& name,
                     double epsilon);

/// down(silu(gate(x)) * up(x)), of the linears NAME.gate_proj, NAME.up_proj and NAME.down_proj.
at::Tensor GatedMlp(const at::Tensor& x, const Parameters& w, const std::string& name);

/// [n, T, heads * D] -> [n, heads, T, D]
at::Tensor SplitHeads(const at::Tensor& x, std::int64_t heads);

/// q, k, v [n, heads, T, D] -> [n, T, heads * D]; a masked pair of positions has no weight.
at::Tensor Attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& masked);

/// The layers of `module`, a PatchEncoder, up to its feature layer, and its final norm.
/// x [n, T, H]; Maker::EncoderLayers has the parameters.
at::Tensor EncoderLayers(at::Tensor x, const ModuleConfig& module, const Parameters& w);
/// Patches [n, P, H] as they leave an encoder: joined to squares if its projector asks for it.
at::Tensor JoinSquares(const at::Tensor& x, const PatchEncoder& encoder);

/// rows [r, H of the source] -> [r, H of the destination]
at::Tensor Project(const at::Tensor& rows, const EdgeConfig& edge, const Parameters& w);

/// Rows [r, H] that stand in the place of the embeddings at positions [r], b * T + t.
struct Insertion {
  at::Tensor rows;
  at::Tensor positions;
};

/// The texts of a global batch.
struct TextBatch {
  at::Tensor tokens;                  ///< [B, T] int64
  std::vector<std::int64_t> samples;  ///< number of each in the global batch
  std::vector<std::int64_t> lengths;  ///< tokens of each, without padding
  const Config* config = nullptr;
  std::int64_t step = 0;
  ExpertChoices* choices = nullptr;  ///< of the run to follow; null: of none
};

struct TextOutput {
  at::Tensor logits;     ///< [B * T, V]
  at::Tensor auxiliary;  ///< a loss that is complete as it is; undefined if there is none
};

}  // namespace troupe::reference
