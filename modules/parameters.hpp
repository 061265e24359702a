// Every parameter of a stage: its name, its shape, how tensor parallelism cuts it, where its values
// start. The one description that programs, checkpoints and memory estimates share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "layout/route.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// How the ranks of a tensor-parallel group share a parameter. All cuts but kKeyValueRows follow
/// PartOf, uneven parts included.
enum class Cut {
  kNone,          ///< everybody holds all of it
  kRows,          ///< dimension 0: outputs of a column-parallel linear, vocabulary
  kColumns,       ///< dimension 1: inputs of a row-parallel linear
  kKeyValueRows,  ///< dimension 0 by key/value heads; with tp > heads, tp/heads ranks share a head
};

enum class Initial { kZeros, kOnes, kNormal };

struct ParameterSpec {
  std::string name;  ///< "language.layers.0.self_attn.q_proj.weight"
  Shape shape;       ///< of the whole tensor; linear weights are [out, in]
  Cut cut = Cut::kNone;
  Initial initial = Initial::kZeros;
  double std = 0.0;           ///< with kNormal
  std::int64_t kv_heads = 0;  ///< with kKeyValueRows
  std::string module;         ///< whose optimizer settings hold
  bool frozen = false;
  bool tied_copy = false;  ///< the head's copy of an embedding that another stage owns
  bool tied = false;       ///< first and last stage hold it and sum its gradients

  std::int64_t num_elements() const { return NumElements(shape); }
};

/// A rank's part of a parameter.
struct ParameterSlice {
  std::vector<std::int64_t> offsets;  ///< one per dimension
  Shape shape;
  bool owner = true;  ///< false when a rank of lower tp holds the same part
};

/// The part of `spec` that rank `tp` of `tp_size` holds. Throws LayoutError when key/value heads
/// neither divide tp nor are divided by it.
ParameterSlice SliceOf(const ParameterSpec& spec, int tp, int tp_size);

/// All parameters of stage `pp` of `module`, in the order in which they run: inline encoders with
/// their projectors, incoming projectors, own layers, outgoing projectors. The weights q, k, v (and
/// gate, up) of a layer are neighbours, so that a program can multiply by them at once.
std::vector<ParameterSpec> StageParameters(const Config& config, const std::string& module, int pp);

/// The edges whose rows enter `module` over a boundary, and those whose source runs inside it.
std::vector<const EdgeConfig*> IncomingEdges(const Config& config, const std::string& module);
std::vector<const EdgeConfig*> InlineEdges(const Config& config, const std::string& module);
/// The boundary edges that leave `module`. All three in the order of config.edges.
std::vector<const EdgeConfig*> OutgoingEdges(const Config& config, const std::string& module);

/// "vision_to_language": the prefix of the names of an edge's projector.
std::string ProjectorName(const EdgeConfig& edge);

/// The module by that name; throws std::invalid_argument naming it when there is none.
const ModuleConfig& FindModule(const Config& config, const std::string& module);

}  // namespace troupe
