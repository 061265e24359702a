#include "data/order/shard_order.hpp"

#include <algorithm>
#include <stdexcept>

#include "data/order/sample_order.hpp"
#include "layout/mix_bits.hpp"

namespace troupe {

ShardOrder::ShardOrder(std::uint64_t seed, const std::vector<std::int64_t>& sizes,
                       std::int64_t window)
    : seed_(seed), window_(window), starts_{0} {
  for (const std::int64_t size : sizes) starts_.push_back(starts_.back() + size);
  if (num_rows() < 1 || window < 1) {
    throw std::invalid_argument("shard order: expected rows, and windows of at least one shard");
  }
}

std::shared_ptr<const ShardOrder::Epoch> ShardOrder::EpochOf(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  if (latest_ != nullptr && latest_->number == number) return latest_;
  auto epoch = std::make_shared<Epoch>();
  epoch->number = number;
  const auto count = std::ssize(starts_) - 1;
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // Shards and rows have different keys. Otherwise equal numbers of both would have the same order.
    const std::int64_t shard = SampleOrder(MixBits(~seed_), number, i, count);
    epoch->shards.push_back(static_cast<std::size_t>(shard));
    rows += starts_[epoch->shards.back() + 1] - starts_[epoch->shards.back()];
    epoch->ends.push_back(rows);
  }
  latest_ = epoch;
  return epoch;
}

std::int64_t ShardOrder::RowAt(std::int64_t place) const {
  const std::int64_t number = place / num_rows();
  const std::int64_t index = place % num_rows();
  const std::shared_ptr<const Epoch> epoch = EpochOf(number);
  const std::vector<std::int64_t>& ends = epoch->ends;
  const auto before = [&](std::int64_t shard) {
    return shard == 0 ? 0 : ends[static_cast<std::size_t>(shard - 1)];
  };
  const std::int64_t holder = std::ranges::upper_bound(ends, index) - ends.begin();
  const std::int64_t window = holder / window_;
  const std::int64_t begin = before(window * window_);
  const std::int64_t end = before(std::min(std::ssize(ends), (window + 1) * window_));
  const std::uint64_t key = seed_ + static_cast<std::uint64_t>(window) * kMixStep;
  const std::int64_t row = begin + SampleOrder(key, number, index - begin, end - begin);
  const std::int64_t found = std::ranges::upper_bound(ends, row) - ends.begin();
  return starts_[epoch->shards[static_cast<std::size_t>(found)]] + row - before(found);
}

}  // namespace troupe
