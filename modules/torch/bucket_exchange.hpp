// The exchange of gradients and parameters between replicas, bucket by bucket, while passes run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <torch/types.h>
#include <vector>

#include "plan/flat_layout.hpp"
#include "transport/started_operations.hpp"

namespace troupe {

/// A bucket's parts of flat tensors.
struct BucketTensors {
  at::Tensor gradients;  ///< [FlatBucket::all]
  at::Tensor read;       ///< the same of the parameters, in the type in which passes read them
};

class BucketExchange;

/// A place in the forward of a part. Before it the forward has not used the parameters of a layer,
/// or of what follows the layers; behind it the backward does not change their gradients.
class ParameterGate : public torch::CustomClassHolder {
 public:
  explicit ParameterGate(BucketExchange& exchange) : exchange_(exchange) {}

  /// The forward is here: waits until the parameters have arrived. Returns `rows`.
  at::Tensor Enter(const at::Tensor& rows);
  /// The backward is here.
  void Leave();

 private:
  friend class BucketExchange;

  BucketExchange& exchange_;
  std::vector<std::size_t> used_;      ///< buckets of its layer
  std::vector<std::size_t> complete_;  ///< buckets behind it in the part
};

using ParameterGatePtr = c10::intrusive_ptr<ParameterGate>;

/// Of the operations of a step, every replica starts the same in the same order, whatever its
/// samples are: gradients from the last bucket of the last part to the first, then those that no
/// gate announces, then `late` ones. Used on the rank's thread.
class BucketExchange {
 public:
  /// `shards` has the replicas of one optimizer instance, `data` those that hold the same part in
  /// all instances; both may be null for a group of one. `late[b]`: the gradients of bucket b have
  /// to be summed over other groups before ReduceRest.
  BucketExchange(const FlatLayout& layout, std::vector<BucketTensors> tensors,
                 std::unique_ptr<Communicator> shards, std::unique_ptr<Communicator> data,
                 const std::vector<bool>& late);

  /// Whether there are other replicas.
  bool active() const { return operations_.has_value(); }

  /// The gate of a layer of a part, or of what follows its layers.
  ParameterGatePtr MakeGate(const std::string& part, BucketPlace place, std::int64_t layer = 0);
  /// A forward begins: waits for the parameters that no gate announces.
  void BeginForward();

  /// From now on gradients are the sums of the step where gates say so.
  void BeginLastBackward() { last_backward_ = true; }
  /// Starts all that is left and waits for all sums. Those of a bucket are in its own part
  /// afterwards; the rest of its gradients means nothing.
  void ReduceRest();

  /// The own part of a bucket's parameters has changed: gathers the others.
  void StartGather(std::size_t bucket);
  /// The buckets in the order in which forwards use them.
  const std::vector<std::size_t>& forward_order() const { return forward_order_; }
  /// Blocks until all parameters have arrived.
  void WaitForParameters();

 private:
  friend class ParameterGate;

  void StartReady();
  void StartReduce(std::size_t bucket);
  void Wait(std::size_t bucket);

  const FlatLayout& layout_;
  const std::vector<BucketTensors> tensors_;
  std::vector<std::size_t> forward_order_;
  std::vector<std::size_t> reduce_order_;
  std::size_t num_early_ = 0;  ///< of reduce_order_: those that may start before ReduceRest
  std::vector<bool> gated_;    ///< by bucket
  std::vector<bool> ready_;    ///< by bucket: its gradients are the sums of the step
  bool last_backward_ = false;
  std::size_t num_started_ = 0;                      ///< of reduce_order_
  std::vector<StartedOperations::Number> gathered_;  ///< by bucket; 0: nothing to wait for
  std::optional<StartedOperations> operations_;
  std::size_t shards_ = 0;  ///< among the groups of operations_
  std::size_t data_ = 0;
};

}  // namespace troupe
