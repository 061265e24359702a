#include "modules/torch/bucket_exchange.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/tensors.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// Passes rows on, and tells the gate when their gradient comes back.
struct GateFunction : torch::autograd::Function<GateFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const ParameterGatePtr& gate) {
    context->saved_data["gate"] = at::IValue::make_capsule(gate);
    return rows.view_as(rows);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    // Behind products of weights that are deferred.
    RunOrDefer([gate = Held<ParameterGate>(context, "gate")] { gate->Leave(); });
    return {gradients[0], {}};
  }
};

int Size(const std::unique_ptr<Communicator>& group) { return group ? group->size() : 1; }

/// Places in the order of a forward.
auto OrderOf(const BucketKey& key) { return std::tuple(key.place, key.layer); }

}  // namespace

BucketExchange::BucketExchange(const FlatLayout& layout, std::vector<BucketTensors> tensors,
                               std::unique_ptr<Communicator> shards,
                               std::unique_ptr<Communicator> data, const std::vector<bool>& late)
    : layout_(layout),
      tensors_(std::move(tensors)),
      gated_(tensors_.size(), false),
      ready_(tensors_.size(), false),
      gathered_(tensors_.size(), 0) {
  const std::vector<FlatBucket>& buckets = layout.buckets();
  std::map<std::string, std::size_t> parts;  // by their order
  for (const FlatBucket& bucket : buckets) parts.emplace(bucket.key.part, parts.size());
  std::vector<std::size_t> early;
  std::vector<std::size_t> outside;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const bool announced = buckets[b].key.place != BucketPlace::kOutsideLayers && !late[b];
    (announced ? early : outside).push_back(b);
  }
  std::ranges::stable_sort(early, std::less<>(), [&](std::size_t b) {
    return std::tuple(parts.at(buckets[b].key.part), OrderOf(buckets[b].key));
  });
  std::ranges::stable_sort(outside, std::less<>(), [&](std::size_t b) { return !late[b]; });
  num_early_ = early.size();
  forward_order_ = std::move(outside);
  forward_order_.insert(forward_order_.end(), early.begin(), early.end());
  reduce_order_.assign(forward_order_.rbegin(), forward_order_.rend());

  std::vector<std::unique_ptr<Communicator>> groups;
  if (Size(shards) > 1) groups.push_back(std::move(shards));
  data_ = groups.size();
  if (Size(data) > 1) groups.push_back(std::move(data));
  if (!groups.empty() && !buckets.empty()) operations_.emplace(std::move(groups), NowNs);
}

at::Tensor ParameterGate::Enter(const at::Tensor& rows) {
  for (const std::size_t b : used_) exchange_.Wait(b);
  if (!rows.requires_grad() || !exchange_.active()) return rows;
  return GateFunction::apply(rows, ParameterGatePtr::reclaim_copy(this));
}

void ParameterGate::Leave() {
  if (!exchange_.last_backward_) return;
  for (const std::size_t b : complete_) exchange_.ready_[b] = true;
  exchange_.StartReady();
}

ParameterGatePtr BucketExchange::MakeGate(const std::string& part, BucketPlace place,
                                          std::int64_t layer) {
  const BucketKey here{.part = part, .place = place, .layer = layer};
  auto gate = c10::make_intrusive<ParameterGate>(*this);
  for (const std::size_t b : reduce_order_) {
    const BucketKey& key = layout_.buckets()[b].key;
    if (key.part != part || key.place == BucketPlace::kOutsideLayers) continue;
    if (OrderOf(key) >= OrderOf(here)) gate->complete_.push_back(b);
    if (key != here) continue;
    gate->used_.push_back(b);
    gated_[b] = true;
  }
  return gate;
}

void BucketExchange::BeginForward() {
  for (std::size_t b = 0; b < gathered_.size(); ++b) {
    if (!gated_[b]) Wait(b);
  }
}

void BucketExchange::StartReady() {
  while (num_started_ < num_early_ && ready_[reduce_order_[num_started_]]) {
    StartReduce(reduce_order_[num_started_++]);
  }
}

void BucketExchange::StartReduce(std::size_t bucket) {
  const FlatBucket& place = layout_.buckets()[bucket];
  if (place.all.empty()) return;
  const at::Tensor& gradients = tensors_[bucket].gradients;
  const at::Tensor own = gradients.narrow(0, place.own.begin - place.all.begin, place.own.size());
  const DType dtype = DTypeOf(gradients.scalar_type());
  if (layout_.sharding().shards > 1) {
    operations_->Start(shards_, Collective::ReduceScatter(gradients.data_ptr(), own.numel(), dtype,
                                                          ReduceOp::kSum, own.data_ptr()));
  }
  if (layout_.sharding().instances > 1) {
    operations_->Start(data_,
                       Collective::AllReduce(own.data_ptr(), own.numel(), dtype, ReduceOp::kSum));
  }
}

void BucketExchange::ReduceRest() {
  last_backward_ = false;
  if (!active()) return;
  while (num_started_ < reduce_order_.size()) StartReduce(reduce_order_[num_started_++]);
  num_started_ = 0;
  std::fill(ready_.begin(), ready_.end(), false);
  operations_->WaitForAll();
}

void BucketExchange::StartGather(std::size_t bucket) {
  const FlatBucket& place = layout_.buckets()[bucket];
  if (layout_.sharding().shards == 1 || place.all.empty()) return;
  const at::Tensor& read = tensors_[bucket].read;
  const at::Tensor own = read.narrow(0, place.own.begin - place.all.begin, place.own.size());
  gathered_[bucket] = operations_->Start(
      shards_, Collective::AllGather(own.data_ptr(), own.nbytes(), read.data_ptr()));
}

void BucketExchange::Wait(std::size_t bucket) {
  if (gathered_[bucket] == 0) return;
  operations_->Wait(gathered_[bucket]);
  gathered_[bucket] = 0;
}

void BucketExchange::WaitForParameters() {
  for (std::size_t b = 0; b < gathered_.size(); ++b) Wait(b);
}

}  // namespace troupe
