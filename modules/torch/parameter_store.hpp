// The parameters of one shard with their gradients and optimizer state.
#pragma once

#include <cstdint>
#include <string>
#include <torch/types.h>
#include <vector>

#include "modules/groups.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/flat_optimizer.hpp"
#include "modules/torch/numerics.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

/// The use of a flat tensor, in the order in which it must be back.
enum class StateUse {
  kForward,   ///< parameters: every pass reads them, the update writes them
  kBackward,  ///< gradients: backwards and the update write them
  kUpdate,    ///< moments, and all else that the update alone reads and writes
};

struct FlatState {
  at::Tensor tensor;  ///< one dimension, alone in its storage
  StateUse use = StateUse::kForward;
};

/// Four flat tensors (values, gradients, two moments) of the trainable parameters, in the type of the
/// state. If products use a shorter type, a fifth holds the values rounded to it. One more holds the
/// frozen parameters, in the type of products only. Parameters are views of them: one collective
/// reduces all gradients, and contiguous parameters can be multiplied by as one matrix.
class ParameterStore {
 public:
  /// The initial values of a parameter follow from (seed, name), in every layout and on every
  /// device. Those of a folder are not set.
  ParameterStore(const std::vector<ParameterSpec>& specs, const ShardAddress& shard,
                 const Layout& layout, std::uint64_t seed, const Numerics& numerics);

  /// A leaf over the rows of the named parameters, stacked: [sum of rows, elements of one row], or
  /// one dimension when they have one. They must be neighbours in the order given to the
  /// constructor. It requires grad when they train, and its .grad is preset, so that every use adds
  /// to it: by hand where the leaf is of a shorter type than the gradients.
  at::Tensor Leaf(const std::vector<std::string>& names) const;
  bool Has(const std::string& name) const;
  at::Tensor Leaf(const std::string& name) const { return Leaf(std::vector{name}); }
  /// The same of the values that are kept: in the type of the state, but of a frozen parameter in
  /// that of products.
  at::Tensor StateLeaf(const std::string& name) const;
  /// Where this shard's part of a parameter begins in the whole, along dimension 0.
  std::int64_t FirstRow(const std::string& name) const { return Find(name).slice.offsets.at(0); }
  /// The same along dimension 1.
  std::int64_t FirstColumn(const std::string& name) const { return Find(name).slice.offsets.at(1); }

  /// Sums the gradients over the shard's groups, in place; see StageProgram::ReduceGradients.
  ReducedGradients ReduceGradients(const ShardGroups& groups);
  /// One AdamW step of everything that trains, then clears the gradients.
  void Update(const Config& config, const UpdateStep& step);
  /// On the host: views of the live tensors, to be read before the next pass writes. On a device:
  /// copies in host memory, for which this waits.
  std::vector<TensorPiece> Pieces(TensorKind kind) const;
  /// See StageProgram::SetTensors; `who` begins the texts of errors.
  void SetPieces(const std::string& who, TensorKind kind, const std::vector<TensorPiece>& pieces);
  /// All flat tensors, each in separate memory.
  std::vector<FlatState> Flats() const;
  std::size_t num_bytes() const;
  const Numerics& numerics() const { return numerics_; }

 private:
  struct Entry {
    ParameterSpec spec;
    ParameterSlice slice;
    std::int64_t size = 0;
    std::int64_t offset = 0;  ///< into `frozen_`, or into all the others
    bool owner = true;        ///< this shard reports these elements
  };

  const Entry& Find(const std::string& name) const;
  at::Tensor LeafOver(const at::Tensor& values, const std::vector<std::string>& names) const;
  void SumOver(Communicator& group, bool (*concerns)(const ParameterSpec&));
  FlatRun RunAt(const Entry& first, std::int64_t count) const;
  const at::Tensor& FlatOf(TensorKind kind) const;
  /// `trained` is FlatOf(kind), and `frozen` is `frozen_`, in host memory.
  std::vector<TensorPiece> PiecesOf(const at::Tensor& trained, const at::Tensor& frozen,
                                    TensorKind kind) const;

  Numerics numerics_;
  std::vector<Entry> entries_;
  at::Tensor frozen_;
  at::Tensor values_;
  at::Tensor rounded_;  ///< `values_` in the type of products, undefined where that is its own
  at::Tensor gradients_;
  at::Tensor first_moments_;
  at::Tensor second_moments_;
};

}  // namespace troupe
