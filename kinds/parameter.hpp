// A parameter of the model: its name, its shape, its cut by tensor parallelism, its initial values.
// Programs, checkpoints and memory estimates share this description.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kinds/enum_set.hpp"
#include "layout/shape.hpp"

namespace troupe {

/// How the ranks of a tensor-parallel group divide a parameter. All cuts but kKeyValueRows follow
/// PartOf, uneven parts included.
enum class Cut {
  kNone,          ///< every rank holds all of it
  kSummed,        ///< as kNone, but each rank uses it for its own heads or rows: gradients add up
  kRows,          ///< dimension 0: outputs of a column-parallel linear, vocabulary
  kColumns,       ///< dimension 1: inputs of a row-parallel linear
  kKeyValueRows,  ///< dimension 0 by key/value heads; with tp > heads, tp/heads ranks share a head
};

enum class Initial { kZeros, kOnes, kNormal };

/// A fact about a parameter by which rules such as optimizer.no_decay choose. A parameter may have
/// several: the bias of a LayerNorm has kBias and kNorm.
enum class Trait : std::uint8_t {
  kBias,
  kNorm,            ///< weight or bias of a LayerNorm or RMSNorm
  kClassEmbedding,  ///< the row that a vision transformer puts before its patches
  kEmbedding        ///< a table with a row for each token or position
};
/// In the order of Trait.
inline const std::vector<std::string> kTraitWords = {"bias", "norm", "class_embedding",
                                                     "embedding"};

/// The linear layers of a layer that adapters may stand beside (configs/config.hpp, LoraConfig).
enum class LinearRole : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kOutput,
  kGate,
  kUp,
  kDown,
  kFc1,
  kFc2
};
/// In the order of LinearRole.
inline const std::vector<std::string> kLinearRoleWords = {"q",  "k",    "v",   "o",  "gate",
                                                          "up", "down", "fc1", "fc2"};

using Traits = EnumSet<Trait>;
using LinearRoles = EnumSet<LinearRole>;

/// An expert of a layer.
struct ExpertNumber {
  std::int64_t number = 0;
  std::int64_t of = 0;  ///< experts in the layer
};

struct ParameterSpec {
  std::string name;  ///< "language.layers.0.self_attn.q_proj.weight"
  Shape shape;       ///< of the whole tensor; linear weights are [out, in]
  Cut cut = Cut::kNone;
  Initial initial = Initial::kZeros;
  double std = 0.0;           ///< with kNormal
  std::int64_t kv_heads = 0;  ///< with kKeyValueRows
  std::string part = {};      ///< the module or projector that it belongs to
  Traits traits = {};
  std::optional<LinearRole> role = {};     ///< of a linear weight that may have an adapter
  std::string adapts = {};                 ///< of an adapter's weight: the name of the other weight
  std::optional<std::int64_t> layer = {};  ///< of its part; unset: before or after the layers
  /// Of an expert: ranks along ep have it or not, and those along etp divide it as `cut` says.
  std::optional<ExpertNumber> expert = {};
  bool unrounded =
      false;  ///< passes read it in the type of the state, even if products are shorter
  bool frozen = false;
  bool from_folder = false;  ///< starts from a Hugging Face folder, not from `initial`
  bool tied_copy = false;    ///< the head's copy of an embedding that another stage owns
  bool tied = false;         ///< first and last stage hold it and sum its gradients

  std::int64_t num_elements() const { return NumElements(shape); }
};

inline double InverseRoot(std::int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); }

/// Collects the parameters of one module or projector, whose name is the prefix of theirs.
class ParameterList {
 public:
  ParameterList(std::vector<ParameterSpec>& specs, std::string part, bool frozen)
      : specs_(specs), part_(std::move(part)), frozen_(frozen) {}

  /// Adds NAME.bias [size], which starts at zero.
  ParameterSpec& AddBias(const std::string& name, std::int64_t size, Cut cut = Cut::kNone) {
    return Add(name + ".bias", {size}, {Trait::kBias}, cut);
  }
  /// Adds a table NAME.weight [rows, width] with standard deviation 1 / sqrt(width).
  ParameterSpec& AddEmbedding(const std::string& name, std::int64_t rows, std::int64_t width,
                              Cut cut = Cut::kNone) {
    ParameterSpec& spec = AddNormal(name + ".weight", {rows, width}, InverseRoot(width), cut);
    spec.traits = {Trait::kEmbedding};
    return spec;
  }
  ParameterSpec& AddNormal(const std::string& name, Shape shape, double std, Cut cut = Cut::kNone) {
    ParameterSpec& spec = Add(name, std::move(shape), {}, cut);
    spec.initial = Initial::kNormal;
    spec.std = std;
    return spec;
  }
  /// Adds a linear weight [out, in] with standard deviation `scale` / sqrt(in).
  ParameterSpec& AddWeight(const std::string& name, std::int64_t out, std::int64_t in, Cut cut,
                           double scale = 1.0) {
    return AddNormal(name + ".weight", {out, in}, InverseRoot(in) * scale, cut);
  }
  /// Adds the weight beside whose layer an adapter may stand.
  ParameterSpec& AddWeight(const std::string& name, LinearRole role, std::int64_t out,
                           std::int64_t in, Cut cut, double scale = 1.0) {
    ParameterSpec& spec = AddWeight(name, out, in, cut, scale);
    spec.role = role;
    return spec;
  }
  /// Adds the weight of an RMSNorm.
  void AddNormWeight(const std::string& name, std::int64_t hidden, Cut cut = Cut::kNone) {
    ParameterSpec& spec = Add(name + ".weight", {hidden}, {Trait::kNorm}, cut);
    spec.initial = Initial::kOnes;
    spec.unrounded = true;
  }
  void AddLayerNorm(const std::string& name, std::int64_t hidden) {
    Add(name + ".weight", {hidden}, {Trait::kNorm}, Cut::kNone).initial = Initial::kOnes;
    AddBias(name, hidden).traits.Add(Trait::kNorm);
  }
  /// Parameters that are added from now on belong to this layer. See also ModelConfig::cuts_rows.
  void SetLayer(std::optional<std::int64_t> layer) { layer_ = layer; }

 private:
  /// Adds a parameter that starts at zero.
  ParameterSpec& Add(const std::string& name, Shape shape, Traits traits, Cut cut) {
    return specs_.emplace_back(ParameterSpec{.name = part_ + "." + name,
                                             .shape = std::move(shape),
                                             .cut = cut,
                                             .part = part_,
                                             .traits = traits,
                                             .layer = layer_,
                                             .frozen = frozen_});
  }

  std::vector<ParameterSpec>& specs_;
  std::string part_;
  bool frozen_;
  std::optional<std::int64_t> layer_;
};

}  // namespace troupe
