// The ranks along cp, each of which has some tokens of every sample, and how they exchange the keys and
// values of these tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "transport/communicator.hpp"
#include "transport/started_operations.hpp"

namespace troupe {

/// Exchanges run while the rank computes with the rows that it has.
class ContextGroup : public torch::CustomClassHolder {
 public:
  /// Of one rank.
  ContextGroup() = default;
  /// Takes the rank's only view of the group; null: of one rank.
  ContextGroup(std::unique_ptr<Communicator> communicator, ContextExchange exchange);

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Called with the rows of a rank.
  using Visit = std::function<void(int rank, const at::Tensor& rows)>;
  /// Calls `visit` once with the rows of every rank, the own ones first. `counts` are the rows of each
  /// rank. Each visit may call ReturnedRows::Add.
  void ForEach(const at::Tensor& own, const std::vector<std::int64_t>& counts, const Visit& visit);

 private:
  friend class ReturnedRows;

  std::int64_t Most(const std::vector<std::int64_t>& counts) const;
  StartedOperations::Number StartExchange(const at::Tensor& sent, int to,
                                          const at::Tensor& received, int from);
  StartedOperations::Number Start(const Collective& call, const at::Tensor& input,
                                  const at::Tensor& output);
  void Wait(StartedOperations::Number number);

  /// A queued operation has their memory, also while a failed visit is on its way out.
  struct InUse {
    StartedOperations::Number number = 0;
    at::Tensor input;
    at::Tensor output;
  };

  ContextExchange exchange_ = ContextExchange::kRing;
  int rank_ = 0;
  int size_ = 1;
  std::deque<InUse> in_use_;                       ///< destroyed after the operations
  std::unique_ptr<StartedOperations> operations_;  ///< null in a group of one
};

using ContextGroupPtr = c10::intrusive_ptr<ContextGroup>;

/// Sums of what all ranks have for each other's rows, such as gradients of keys and values. Every rank
/// adds for the ranks in the order in which ForEach visits them.
class ReturnedRows {
 public:
  /// Of rows [counts[rank], width] of type `options`.
  ReturnedRows(ContextGroup& group, const std::vector<std::int64_t>& counts, std::int64_t width,
               const at::TensorOptions& options);
  /// Once for every rank. `rows` are of type float32 or longer.
  void Add(int rank, const at::Tensor& rows);
  /// The sum of the own rows.
  at::Tensor Finish();

 private:
  ContextGroup& group_;
  const std::vector<std::int64_t>& counts_;
  std::int64_t width_;
  at::TensorOptions options_;
  at::Tensor own_;
  at::Tensor all_;                    ///< with gathers: rows for every rank, equally many
  std::vector<at::Tensor> received_;  ///< otherwise those from the others
  StartedOperations::Number last_ = 0;
};

}  // namespace troupe
