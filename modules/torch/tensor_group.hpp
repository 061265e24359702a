// The tensor-parallel group as autograd nodes hold it.
#pragma once

#include <torch/types.h>

#include "modules/torch/tensors.hpp"
#include "transport/communicator.hpp"

namespace troupe {

/// Collectives on tensors over a Communicator, which must outlive every graph that mentions it.
/// Held by the nodes themselves: nothing about a rank may be thread-local, since a backward pass
/// may run on another thread than its forward.
class TensorGroup : public torch::CustomClassHolder {
 public:
  explicit TensorGroup(Communicator& communicator) : communicator_(communicator) {}

  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }

  /// In place; `tensor` must be contiguous. A group of one does nothing.
  void AllReduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum) const {
    if (size() == 1) return;
    TORCH_INTERNAL_ASSERT(tensor.is_contiguous());
    communicator_.AllReduce(tensor.data_ptr(), tensor.numel(), DTypeOf(tensor.scalar_type()), op);
  }

 private:
  Communicator& communicator_;
};

using TensorGroupPtr = c10::intrusive_ptr<TensorGroup>;

}  // namespace troupe
