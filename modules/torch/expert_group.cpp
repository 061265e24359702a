#include "modules/torch/expert_group.hpp"

#include <numeric>
#include <utility>

#include "modules/torch/tensors.hpp"

namespace troupe {

ExpertGroup::ExpertGroup(std::unique_ptr<Communicator> expert,
                         std::unique_ptr<Communicator> balance, const Layout& layout)
    : expert_(std::move(expert)), balance_(std::move(balance)), etp_(layout.etp) {}

int ExpertGroup::EpOf(int rank) const {
  static_assert(kExpertAxisOrder[0] == ExpertAxis::kTensor);
  return rank / etp_;
}

at::Tensor ExpertGroup::Exchange(const at::Tensor& rows, const RowCounts& sent,
                                 const RowCounts& received) const {
  if (size() == 1) return rows;
  const std::int64_t width = rows.size(1);
  const auto row_bytes = static_cast<std::size_t>(width) * rows.element_size();
  const auto bytes = [row_bytes](const RowCounts& counts) {
    std::vector<std::size_t> all;
    for (const std::int64_t count : counts)
      all.push_back(static_cast<std::size_t>(count) * row_bytes);
    return all;
  };
  TORCH_INTERNAL_ASSERT(rows.is_contiguous());
  at::Tensor arrived = at::empty(
      {std::accumulate(received.begin(), received.end(), std::int64_t{0}), width}, rows.options());
  expert_->AllToAll(rows.data_ptr(), bytes(sent), arrived.data_ptr(), bytes(received));
  return arrived;
}

at::Tensor ExpertGroup::GatherCounts(const at::Tensor& own) const {
  if (size() == 1) return own.unsqueeze(0);
  at::Tensor all = at::empty({size(), own.numel()}, own.options());
  expert_->AllGather(own.data_ptr(), own.nbytes(), all.data_ptr());
  return all;
}

void ExpertGroup::SumCounts(at::Tensor& counts) const {
  if (!balance_ || balance_->size() == 1) return;
  balance_->AllReduce(counts.data_ptr(), counts.numel(), DType::kFloat64, ReduceOp::kSum);
}

}  // namespace troupe
