#include "modules/torch/context_group.hpp"

#include <algorithm>
#include <utility>

#include "modules/torch/planted.hpp"
#include "modules/torch/tensors.hpp"

namespace troupe {
namespace {

thread_local at::Tensor before;  // the rows that came last

/// `rows`, or with the planted fault those of the exchange before.
at::Tensor Received(const at::Tensor& rows) {
  if (!HasLibraryFault(LibraryFault::kStaleKeyValues)) return rows;
  const at::Tensor last = std::exchange(before, rows);
  return last.defined() && last.sizes() == rows.sizes() ? last : rows;
}

}  // namespace

ContextGroup::ContextGroup(std::unique_ptr<Communicator> communicator, ContextExchange exchange)
    : exchange_(exchange) {
  if (!communicator || communicator->size() == 1) return;
  rank_ = communicator->rank();
  size_ = communicator->size();
  std::vector<std::unique_ptr<Communicator>> groups;
  groups.push_back(std::move(communicator));
  operations_ = std::make_unique<StartedOperations>(std::move(groups));
}

std::int64_t ContextGroup::Most(const std::vector<std::int64_t>& counts) const {
  return *std::ranges::max_element(counts);
}

StartedOperations::Number ContextGroup::StartExchange(const at::Tensor& sent, int to,
                                                      const at::Tensor& received, int from) {
  std::vector<std::size_t> send_bytes(static_cast<std::size_t>(size_));
  std::vector<std::size_t> receive_bytes(send_bytes.size());
  send_bytes[static_cast<std::size_t>(to)] = sent.nbytes();
  receive_bytes[static_cast<std::size_t>(from)] = received.nbytes();
  return Start(
      Collective::AllToAll(sent.data_ptr(), send_bytes, received.data_ptr(), receive_bytes), sent,
      received);
}

StartedOperations::Number ContextGroup::Start(const Collective& call, const at::Tensor& input,
                                              const at::Tensor& output) {
  const StartedOperations::Number number = operations_->Start(0, call);
  in_use_.push_back({number, input, output});
  return number;
}

void ContextGroup::Wait(StartedOperations::Number number) {
  operations_->Wait(number);
  while (!in_use_.empty() && in_use_.front().number <= number) in_use_.pop_front();
}

void ContextGroup::ForEach(const at::Tensor& own, const std::vector<std::int64_t>& counts,
                           const Visit& visit) {
  if (size_ == 1) return visit(0, own);
  const auto other = [this](int steps) { return (rank_ + steps + size_) % size_; };
  const auto rows_of = [&](int rank) { return counts.at(static_cast<std::size_t>(rank)); };
  const std::int64_t width = own.size(1);
  if (exchange_ == ContextExchange::kGather) {
    const std::int64_t most = Most(counts);
    const at::Tensor all = at::empty({size_ * most, width}, own.options());
    const at::Tensor mine = all.narrow(0, rank_ * most, most);
    mine.narrow(0, 0, own.size(0)).copy_(own);
    mine.narrow(0, own.size(0), most - own.size(0)).zero_();
    const auto number =
        Start(Collective::AllGather(mine.data_ptr(), mine.nbytes(), all.data_ptr()), all, all);
    visit(rank_, own);
    Wait(number);
    for (int step = 1; step < size_; ++step) {
      const int rank = other(-step);
      visit(rank, Received(all.narrow(0, rank * most, rows_of(rank))));
    }
    return;
  }
  at::Tensor rows = own;
  for (int step = 0; step < size_; ++step) {
    if (step + 1 == size_) return visit(other(-step), Received(rows));
    const at::Tensor next = at::empty({rows_of(other(-step - 1)), width}, own.options());
    const auto number = StartExchange(rows, other(1), next, other(-1));
    visit(other(-step), step == 0 ? rows : Received(rows));
    Wait(number);
    rows = next;
  }
}

ReturnedRows::ReturnedRows(ContextGroup& group, const std::vector<std::int64_t>& counts,
                           std::int64_t width, const at::TensorOptions& options)
    : group_(group), counts_(counts), width_(width), options_(options) {
  if (group.size() == 1 || group.exchange_ != ContextExchange::kGather) return;
  all_ = at::zeros({group.size(), group.Most(counts), width}, options);
}

void ReturnedRows::Add(int rank, const at::Tensor& rows) {
  if (all_.defined()) {
    all_.select(0, rank).narrow(0, 0, rows.size(0)).copy_(rows);
  } else if (rank == group_.rank()) {
    own_ = rows;
  } else {
    // Directly to their rank: on a way round the ring they would be rounded at every member.
    const int from = (2 * group_.rank() - rank + group_.size()) % group_.size();
    const at::Tensor sent = rows.to(options_.dtype()).contiguous();
    received_.push_back(
        at::empty({counts_.at(static_cast<std::size_t>(group_.rank())), width_}, options_));
    last_ = group_.StartExchange(sent, rank, received_.back(), from);
  }
}

at::Tensor ReturnedRows::Finish() {
  if (all_.defined()) {
    const at::Tensor own = all_.select(0, group_.rank());
    group_.Wait(group_.Start(
        Collective::ReduceScatter(all_.data_ptr(), own.numel(), DTypeOf(own.scalar_type()),
                                  ReduceOp::kSum, own.data_ptr()),
        all_, all_));
    return own.narrow(0, 0, counts_.at(static_cast<std::size_t>(group_.rank())));
  }
  if (!received_.empty()) group_.Wait(last_);
  for (const at::Tensor& rows : received_) own_.add_(rows);
  return own_.to(options_.dtype());
}

}  // namespace troupe
