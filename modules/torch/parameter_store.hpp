// The parameters of one shard with their gradients and optimizer state.
#pragma once

#include <cstdint>
#include <string>
#include <torch/types.h>
#include <vector>

#include "modules/groups.hpp"
#include "modules/parameters.hpp"
#include "modules/stage_program.hpp"
#include "modules/torch/flat_state.hpp"

namespace troupe {

/// Four flat tensors (values, gradients, two moments), the last three of what trains only.
/// Parameters are views of them: one collective reduces all gradients, and parameters that lie
/// behind each other can be multiplied by as one matrix.
class ParameterStore {
 public:
  /// Values are slices of what (seed, name) says, whatever the layout.
  ParameterStore(const std::vector<ParameterSpec>& specs, const ShardAddress& shard,
                 const Layout& layout, std::uint64_t seed, at::ScalarType type);

  /// A leaf over the rows of the named parameters, stacked: [sum of rows, elements of one row], or
  /// one dimension when they have one. They must be neighbours in the order given to the
  /// constructor. It requires grad when they train, and its .grad is preset, so that every use adds
  /// to it.
  at::Tensor Leaf(const std::vector<std::string>& names) const;
  at::Tensor Leaf(const std::string& name) const { return Leaf(std::vector{name}); }
  bool Contains(const std::string& name) const;
  /// Where this shard's part of a parameter begins in the whole, along dimension 0.
  std::int64_t FirstRow(const std::string& name) const { return Find(name).slice.offsets.at(0); }

  /// Sums the gradients over the shard's groups, in place; see StageProgram::ReduceGradients.
  double ReduceGradients(const ShardGroups& groups);
  /// One AdamW step of everything that trains, then clears the gradients.
  void Update(const Config& config, const UpdateStep& step);
  /// Views of live memory: read them before the next pass writes.
  std::vector<TensorPiece> Pieces(TensorKind kind) const;
  /// All that is kept, each in memory of its own.
  std::vector<FlatState> Flats() const;
  std::size_t num_bytes() const;
  at::ScalarType scalar_type() const { return values_.scalar_type(); }

 private:
  struct Entry {
    ParameterSpec spec;
    ParameterSlice slice;
    std::int64_t size = 0;
    std::int64_t value_offset = 0;
    std::int64_t gradient_offset = 0;  ///< into gradients and moments, unless frozen
    bool owner = true;                 ///< this shard speaks for these elements
  };

  const Entry& Find(const std::string& name) const;
  void Initialise(const Entry& entry, std::uint64_t seed);
  void SumOver(Communicator& group, bool (*concerns)(const ParameterSpec&));
  at::Tensor FlatOf(TensorKind kind) const;

  std::vector<Entry> entries_;
  at::Tensor values_;
  at::Tensor gradients_;
  at::Tensor first_moments_;
  at::Tensor second_moments_;
};

}  // namespace troupe
