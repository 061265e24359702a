#include "modules/batch_order.hpp"

#include <iterator>

namespace troupe {

BatchOrder::BatchOrder(const Config& config) {
  if (config.data.order != DataOrder::kBalanced) return;
  step_order_ = std::make_unique<const StepOrder>(config);
}

BatchOrder::Order BatchOrder::OrderOf(
    const Round& round, const std::function<SampleTimes(std::int64_t i)>& times) const {
  // Rounds overlap by a step.
  constexpr std::size_t kKeptSteps = 4;
  const std::lock_guard lock(mutex_);  // others need the same order and wait for it
  const std::pair key(round.place, round.microbatches);
  Order& order = recent_[key];
  if (order == nullptr) {
    const std::int64_t samples = step_order_->plan().samples_per_microbatch() * round.microbatches;
    std::vector<SampleTimes> all;
    std::vector<std::int64_t> drawn;
    for (std::int64_t i = 0; i < samples; ++i) {
      all.push_back(times(i));
      drawn.push_back(i);
    }
    Placed placed{step_order_->Order(all, round.microbatches), {}};
    placed.balance = {step_order_->MaxOverMean(all, drawn),
                      step_order_->MaxOverMean(all, placed.order)};
    order = std::make_shared<const Placed>(std::move(placed));
  }
  const Order result = order;
  if (recent_.size() > kKeptSteps) {
    recent_.erase(recent_.begin()->first == key ? std::prev(recent_.end()) : recent_.begin());
  }
  return result;
}

std::int64_t BatchOrder::SampleAt(const Round& round, std::int64_t k,
                                  const std::function<SampleTimes(std::int64_t i)>& times) const {
  if (step_order_ == nullptr || !round.train) return k;
  return OrderOf(round, times)->order.at(static_cast<std::size_t>(k));
}

std::optional<StepBalance> BatchOrder::BalanceOf(
    const Round& round, const std::function<SampleTimes(std::int64_t i)>& times) const {
  if (step_order_ == nullptr || !round.train) return std::nullopt;
  return OrderOf(round, times)->balance;
}

}  // namespace troupe
