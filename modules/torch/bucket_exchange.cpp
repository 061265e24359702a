#include "modules/torch/bucket_exchange.hpp"

#include <utility>

#include "modules/torch/autograd.hpp"
#include "modules/torch/deferred_weights.hpp"
#include "modules/torch/tensors.hpp"
#include "trace/clock.hpp"

namespace troupe {
namespace {

/// Returns rows, and calls Leave of the gate when their gradient comes back.
struct GateFunction : torch::autograd::Function<GateFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const ParameterGatePtr& gate) {
    context->saved_data["gate"] = at::IValue::make_capsule(gate);
    return rows.view_as(rows);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    // After the products of weights, which may be deferred.
    RunOrDefer([gate = Held<ParameterGate>(context, "gate")] { gate->Leave(); });
    return {gradients[0], {}};
  }
};

int Size(const std::unique_ptr<Communicator>& group) { return group ? group->size() : 1; }

}  // namespace

BucketExchange::BucketExchange(const FlatLayout& layout, std::vector<BucketTensors> tensors,
                               HolderGroups others, HolderGroups experts,
                               const std::vector<bool>& late)
    : layout_(layout),
      tensors_(std::move(tensors)),
      order_(layout, late),
      gated_(tensors_.size(), false),
      gathered_(tensors_.size(), 0) {
  std::vector<std::unique_ptr<Communicator>> groups;
  const auto add = [&groups](std::unique_ptr<Communicator>& group) {
    const std::size_t number = groups.size();
    if (Size(group) > 1) groups.push_back(std::move(group));
    return number;
  };
  others_ = {add(others.shards), add(others.data)};
  experts_ = {add(experts.shards), add(experts.data)};
  if (groups.empty() || tensors_.empty()) return;
  // Of operations on a device, the host knows only when they were queued.
  measures_ = tensors_.front().gradients.device().is_cpu();
  operations_.emplace(std::move(groups), measures_ ? NowNs : nullptr);
}

at::Tensor ParameterGate::Enter(const at::Tensor& rows) {
  if (!exchange_.operations_) return rows;
  for (const std::size_t b : place_.used) exchange_.WaitForGather(b);
  if (!rows.requires_grad()) return rows;
  return GateFunction::apply(rows, ParameterGatePtr::reclaim_copy(this));
}

void ParameterGate::Leave() {
  if (!exchange_.last_backward_) return;
  for (const std::size_t b : exchange_.order_.Leave(place_)) exchange_.StartReduce(b);
}

ParameterGatePtr BucketExchange::MakeGate(const std::string& part, BucketPlace place,
                                          std::int64_t layer) {
  GatePlace gate = order_.GateOf(part, place, layer);
  for (const std::size_t b : gate.used) gated_[b] = true;
  return c10::make_intrusive<ParameterGate>(*this, std::move(gate));
}

void BucketExchange::BeginForward() {
  for (std::size_t b = 0; b < gathered_.size(); ++b) {
    if (!gated_[b]) WaitForGather(b);
  }
}

void BucketExchange::StartReduce(std::size_t bucket) {
  const FlatBucket& place = layout_.buckets()[bucket];
  if (place.all.empty()) return;
  const at::Tensor& gradients = tensors_[bucket].gradients;
  const at::Tensor own = gradients.narrow(0, place.own.begin - place.all.begin, place.own.size());
  const DType dtype = DTypeOf(gradients.scalar_type());
  const auto start = [&](std::size_t group, const Collective& call) {
    last_reduce_ = operations_->Start(group, call);
  };
  if (layout_.ShardingOf(place).shards > 1) {
    start(NumbersOf(place).shards,
          Collective::ReduceScatter(gradients.data_ptr(), own.numel(), dtype, ReduceOp::kSum,
                                    own.data_ptr()));
  }
  if (layout_.ShardingOf(place).instances > 1) {
    start(NumbersOf(place).data,
          Collective::AllReduce(own.data_ptr(), own.numel(), dtype, ReduceOp::kSum));
  }
}

void BucketExchange::ReduceRest() {
  last_backward_ = false;
  if (!operations_) return;
  for (const std::size_t b : order_.Finish()) StartReduce(b);
  WaitFor(last_reduce_);
}

void BucketExchange::StartGather(std::size_t bucket) {
  const FlatBucket& place = layout_.buckets()[bucket];
  if (layout_.ShardingOf(place).shards == 1 || place.all.empty()) return;
  const at::Tensor& read = tensors_[bucket].read;
  const at::Tensor own = read.narrow(0, place.own.begin - place.all.begin, place.own.size());
  gathered_[bucket] =
      operations_->Start(NumbersOf(place).shards,
                         Collective::AllGather(own.data_ptr(), own.nbytes(), read.data_ptr()));
}

void BucketExchange::WaitForGather(std::size_t bucket) {
  if (gathered_[bucket] == 0) return;
  WaitFor(std::exchange(gathered_[bucket], 0));
}

void BucketExchange::WaitFor(StartedOperations::Number number) {
  const std::int64_t begin_ns = NowNs();
  operations_->Wait(number);
  if (measures_) waits_.push_back({WorkKind::kCollectiveWait, {begin_ns, NowNs(), {}}});
}

void BucketExchange::WaitForParameters() {
  for (std::size_t b = 0; b < gathered_.size(); ++b) WaitForGather(b);
}

std::vector<ConcurrentWork> BucketExchange::TakeConcurrent() {
  std::vector<ConcurrentWork> all = std::exchange(waits_, {});
  if (!operations_) return all;
  for (const OperationTimes& done : operations_->TakeTimes()) {
    const bool gathers = done.operation == Operation::kAllGather;
    all.push_back(
        {gathers ? WorkKind::kGather : WorkKind::kReduceBucket, {done.begin_ns, done.end_ns, {}}});
  }
  return all;
}

}  // namespace troupe
