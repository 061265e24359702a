// A parameter of the model: its name, its shape, its cut by tensor parallelism, its initial values.
// Programs, checkpoints and memory estimates share this description.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "layout/shape.hpp"

namespace troupe {

/// How the ranks of a tensor-parallel group divide a parameter. All cuts but kKeyValueRows follow
/// PartOf, uneven parts included.
enum class Cut {
  kNone,          ///< every rank holds all of it
  kSummed,        ///< as kNone, but each rank uses it for its own heads: their gradients add up
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
  std::string module = {};    ///< the module whose optimizer settings apply
  bool frozen = false;
  bool from_folder = false;  ///< starts from a Hugging Face folder, not from `initial`
  bool tied_copy = false;    ///< the head's copy of an embedding that another stage owns
  bool tied = false;         ///< first and last stage hold it and sum its gradients

  std::int64_t num_elements() const { return NumElements(shape); }
};

inline double InverseRoot(std::int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); }

/// Collects the parameters of one module or projector. Prefixes their names.
class ParameterList {
 public:
  ParameterList(std::vector<ParameterSpec>& specs, std::string prefix, std::string module,
                bool frozen)
      : specs_(specs), prefix_(std::move(prefix)), module_(std::move(module)), frozen_(frozen) {}

  /// Adds a parameter that starts at zero.
  ParameterSpec& Add(const std::string& name, Shape shape, Cut cut = Cut::kNone) {
    return specs_.emplace_back(ParameterSpec{.name = prefix_ + "." + name,
                                             .shape = std::move(shape),
                                             .cut = cut,
                                             .module = module_,
                                             .frozen = frozen_});
  }
  ParameterSpec& AddNormal(const std::string& name, Shape shape, double std, Cut cut = Cut::kNone) {
    ParameterSpec& spec = Add(name, std::move(shape), cut);
    spec.initial = Initial::kNormal;
    spec.std = std;
    return spec;
  }
  /// Adds a linear weight [out, in] with standard deviation `scale` / sqrt(in).
  ParameterSpec& AddWeight(const std::string& name, std::int64_t out, std::int64_t in, Cut cut,
                           double scale = 1.0) {
    return AddNormal(name + ".weight", {out, in}, InverseRoot(in) * scale, cut);
  }
  void AddNormWeight(const std::string& name, std::int64_t hidden, Cut cut = Cut::kNone) {
    Add(name + ".weight", {hidden}, cut).initial = Initial::kOnes;
  }
  void AddLayerNorm(const std::string& name, std::int64_t hidden) {
    AddNormWeight(name, hidden);
    Add(name + ".bias", {hidden});
  }

 private:
  std::vector<ParameterSpec>& specs_;
  std::string prefix_;
  std::string module_;
  bool frozen_;
};

}  // namespace troupe
