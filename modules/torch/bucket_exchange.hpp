// The exchange of gradients and parameters between replicas, bucket by bucket, while passes run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <torch/types.h>
#include <vector>

#include "modules/groups.hpp"
#include "modules/stage_program.hpp"
#include "plan/bucket_order.hpp"
#include "transport/started_operations.hpp"

namespace troupe {

class BucketExchange;

/// A gate in a forward (plan/bucket_order.hpp).
class ParameterGate : public torch::CustomClassHolder {
 public:
  ParameterGate(BucketExchange& exchange, GatePlace place)
      : exchange_(exchange), place_(std::move(place)) {}

  /// The forward is here: waits until the parameters used after the gate have arrived. Returns `rows`.
  at::Tensor Enter(const at::Tensor& rows);
  /// The backward is here.
  void Leave();

 private:
  BucketExchange& exchange_;
  GatePlace place_;
};

using ParameterGatePtr = c10::intrusive_ptr<ParameterGate>;

/// A bucket's parts of flat tensors.
struct BucketTensors {
  at::Tensor gradients;  ///< [FlatBucket::all]
  at::Tensor read;       ///< the same of the parameters, in the type in which passes read them
};

/// Used on the rank's thread.
class BucketExchange {
 public:
  /// `experts` are the groups of experts, `others` those of all other parameters. `late[b]`: the
  /// gradients of bucket b have to be summed over other groups before ReduceRest.
  BucketExchange(const FlatLayout& layout, std::vector<BucketTensors> tensors, HolderGroups others,
                 HolderGroups experts, const std::vector<bool>& late);

  /// The gate before a layer of a part, or before what follows its layers.
  ParameterGatePtr MakeGate(const std::string& part, BucketPlace place, std::int64_t layer = 0);
  /// A forward begins: waits for the parameters that no gate covers.
  void BeginForward();

  /// From now on gradients are the sums of the step where gates say so.
  void BeginLastBackward() { last_backward_ = true; }
  /// Starts all that is left and waits for all sums. Those of a bucket are in its own part
  /// afterwards; the rest of its gradients means nothing.
  void ReduceRest();

  /// The own part of a bucket's parameters has changed: gathers the others.
  void StartGather(std::size_t bucket);
  /// The buckets in the order in which forwards use them.
  const std::vector<std::size_t>& forward_order() const { return order_.forward(); }
  /// Blocks until all parameters have arrived.
  void WaitForParameters();

  /// See StageProgram.
  std::vector<ConcurrentWork> TakeConcurrent();

 private:
  friend class ParameterGate;

  /// The places of HolderGroups among those of operations_.
  struct GroupNumbers {
    std::size_t shards = 0;
    std::size_t data = 0;
  };

  const GroupNumbers& NumbersOf(const FlatBucket& bucket) const {
    return bucket.key.expert ? experts_ : others_;
  }
  void StartReduce(std::size_t bucket);
  void WaitForGather(std::size_t bucket);
  void WaitFor(StartedOperations::Number number);

  const FlatLayout& layout_;
  const std::vector<BucketTensors> tensors_;
  BucketOrder order_;
  std::vector<bool> gated_;  ///< by bucket
  bool last_backward_ = false;
  StartedOperations::Number last_reduce_ = 0;
  std::vector<StartedOperations::Number> gathered_;  ///< by bucket; 0: nothing to wait for
  bool measures_ = false;
  std::vector<ConcurrentWork> waits_;
  std::optional<StartedOperations> operations_;  ///< none if there are no other replicas
  GroupNumbers others_;
  GroupNumbers experts_;
};

}  // namespace troupe
