// The tensor-parallel group as autograd nodes hold it.
#pragma once

#include <cstdint>
#include <torch/types.h>
#include <vector>

#include "modules/torch/tensors.hpp"
#include "transport/communicator.hpp"

namespace troupe {

/// Collectives on tensors over a Communicator, which must outlive every graph that mentions it.
/// Held by the nodes themselves: nothing about a rank may be thread-local, since a backward pass
/// may run on another thread than its forward.
class TensorGroup : public torch::CustomClassHolder {
 public:
  /// `cuts_rows`: between its linears a layer's rows are cut over the ranks (sequence_rows.hpp).
  explicit TensorGroup(Communicator& communicator, bool cuts_rows = false)
      : communicator_(communicator), cuts_rows_(cuts_rows && communicator.size() > 1) {}

  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  bool cuts_rows() const { return cuts_rows_; }

  /// In place; `tensor` must be contiguous. A group of one does nothing.
  void AllReduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum) const {
    if (size() == 1) return;
    TORCH_INTERNAL_ASSERT(tensor.is_contiguous());
    communicator_.AllReduce(tensor.data_ptr(), tensor.numel(), DTypeOf(tensor.scalar_type()), op);
  }

  /// [size * m, ...], in the order of ranks, from `own` [m, ...] of each.
  at::Tensor AllGather(const at::Tensor& own) const {
    TORCH_INTERNAL_ASSERT(own.is_contiguous());
    at::Tensor all = at::empty(WithRows(own, own.size(0) * size()), own.options());
    communicator_.AllGather(own.data_ptr(), own.nbytes(), all.data_ptr());
    return all;
  }
  /// [m, ...]: this rank's part of the sum of x [size * m, ...].
  at::Tensor ReduceScatter(const at::Tensor& x) const {
    TORCH_INTERNAL_ASSERT(x.is_contiguous());
    at::Tensor own = at::empty(WithRows(x, x.size(0) / size()), x.options());
    communicator_.ReduceScatter(x.data_ptr(), own.numel(), DTypeOf(x.scalar_type()), ReduceOp::kSum,
                                own.data_ptr());
    return own;
  }

 private:
  static std::vector<std::int64_t> WithRows(const at::Tensor& like, std::int64_t rows) {
    std::vector<std::int64_t> shape = like.sizes().vec();
    shape[0] = rows;
    return shape;
  }

  Communicator& communicator_;
  bool cuts_rows_;
};

using TensorGroupPtr = c10::intrusive_ptr<TensorGroup>;

}  // namespace troupe
