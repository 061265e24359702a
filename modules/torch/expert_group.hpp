// The ranks that have all experts of a layer together, and how they exchange tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <torch/types.h>
#include <vector>

#include "layout/grid.hpp"
#include "transport/communicator.hpp"

namespace troupe {

/// Rows for each rank of a group, or from each.
using RowCounts = std::vector<std::int64_t>;

class ExpertGroup : public torch::CustomClassHolder {
 public:
  /// Of one rank, which has all experts.
  ExpertGroup() = default;
  /// Takes the rank's only views of the groups; null: of one rank. `expert` has ep * etp ranks in
  /// kExpertAxisOrder; `balance` those that add up how many tokens each expert gets.
  ExpertGroup(std::unique_ptr<Communicator> expert, std::unique_ptr<Communicator> balance,
              const Layout& layout);

  int rank() const { return expert_ ? expert_->rank() : 0; }
  int size() const { return expert_ ? expert_->size() : 1; }
  /// The parts of each expert, and the rank with part `etp` of the experts of part `ep`.
  int etp() const { return etp_; }
  int ep() const { return size() / etp_; }
  int own_ep() const { return EpOf(rank()); }
  int EpOf(int rank) const;

  /// Rows from all ranks in their order. `rows` [sum of sent, H] are for the ranks in their order.
  at::Tensor Exchange(const at::Tensor& rows, const RowCounts& sent,
                      const RowCounts& received) const;
  /// [size, n] of `own` [n] of every rank.
  at::Tensor GatherCounts(const at::Tensor& own) const;
  /// Sums float64 numbers over the ranks of `balance`, in place.
  void SumCounts(at::Tensor& counts) const;

 private:
  std::unique_ptr<Communicator> expert_;
  std::unique_ptr<Communicator> balance_;
  int etp_ = 1;
};

using ExpertGroupPtr = c10::intrusive_ptr<ExpertGroup>;

}  // namespace troupe
