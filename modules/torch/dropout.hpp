// Dropout of the inputs of adapters (modules/dropout.hpp) on tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <torch/types.h>
#include <vector>

#include "configs/config.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

class Encoder;

/// While it lives, adapters on this thread drop inputs of these rows. A recomputed part runs in the
/// backward, when the scope has ended: Recomputed opens one with the rows of the forward.
class DropoutScope {
 public:
  /// [M] int32 by DropoutRow, where the rows are; undefined: nothing is dropped.
  explicit DropoutScope(at::Tensor rows);
  ~DropoutScope();
  DropoutScope(const DropoutScope&) = delete;
  DropoutScope& operator=(const DropoutScope&) = delete;

  /// The rows of the innermost scope of this thread.
  static const at::Tensor& Rows();

 private:
  at::Tensor outer_;
};

/// The rows of a module's layers in training passes.
class RowDropout {
 public:
  RowDropout(const Config& config, const ModuleConfig& module);

  /// The numbers of the rows that are here of the sample at that place in the table.
  using RowNumbers = std::function<std::vector<std::int64_t>(std::size_t place)>;

  /// For the `num_rows` rows that enter the layers of all ranks along tp. Undefined if nothing is dropped
  /// in this pass. Throws std::invalid_argument for another number of rows, or without a table.
  at::Tensor RowsOf(const ForwardPass& pass, const RowTable* table, std::int64_t num_rows,
                    const at::Device& device, const RowNumbers& numbers) const;
  /// Those of an encoder, whose samples have rows there in proportion to those that leave.
  at::Tensor RowsOf(const ForwardPass& pass, const RowTable* table, const at::Tensor& rows,
                    const Encoder& encoder) const;

 private:
  std::string name_;
  bool drops_;
  std::uint64_t seed_;
  std::int64_t samples_per_microbatch_;
};

/// The features of an adapter's inputs from `first` on that this shard holds, [count] int32 by
/// DropoutFeature.
at::Tensor DropoutFeatures(const std::string& adapter, std::int64_t first, std::int64_t count,
                           const at::Device& device);

/// Whether each input is dropped: [M, count] bool.
at::Tensor Dropped(const at::Tensor& rows, const at::Tensor& features, double share);

}  // namespace troupe
