// The order of the rows of one source. Each epoch draws an order of the shards and mixes the rows of a few
// neighbours, so that reads stay within these. Nothing is stored.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe {

/// Thread-safe.
class ShardOrder {
 public:
  /// `sizes`: rows of each shard, at least one in all. `window`: shards whose rows are mixed, at least one.
  ShardOrder(std::uint64_t seed, const std::vector<std::int64_t>& sizes, std::int64_t window);

  /// Returns the row at a place of the endless order, counted over the shards as they were given. Each
  /// epoch, num_rows() places, has every row once.
  std::int64_t RowAt(std::int64_t place) const;
  std::int64_t num_rows() const { return starts_.back(); }

 private:
  /// The shards in the order of an epoch.
  struct Epoch {
    std::int64_t number = -1;
    std::vector<std::size_t> shards;
    std::vector<std::int64_t> ends;  ///< rows up to and including each
  };
  std::shared_ptr<const Epoch> EpochOf(std::int64_t number) const;

  std::uint64_t seed_;
  std::int64_t window_;
  std::vector<std::int64_t> starts_;  ///< rows before each shard, and at last all
  mutable std::mutex mutex_;          ///< guards `latest_`
  mutable std::shared_ptr<const Epoch> latest_;
};

}  // namespace troupe
