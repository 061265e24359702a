// Samples of an endless or finite order put together in packs, which have no padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "modules/data_position.hpp"

namespace troupe {

/// Puts samples of `tokens` tokens each into packs of at most `room`: the longest first, each into the
/// fullest pack where it fits. Returns the samples of each pack, ascending; packs are in the order of
/// their first samples. A sample longer than `room` is a pack alone.
std::vector<std::vector<std::size_t>> MakePacks(std::span<const std::int64_t> tokens,
                                                std::int64_t room);

/// Windows of neighbouring places of an order, each put into packs for itself. A function of token
/// counts alone, so every process can compute any pack. Thread-safe.
class PackOrder {
 public:
  /// `tokens_at` gives the tokens of the sample at a place, counted from 0; thread-safe. The order has
  /// `end` places; unset: it is endless.
  PackOrder(std::int64_t room, std::int64_t window,
            std::function<std::int64_t(std::int64_t place)> tokens_at,
            std::optional<std::int64_t> end = {});

  /// The places of the samples in a pack, counted over all windows; none after the last pack.
  std::vector<std::int64_t> PlacesIn(std::int64_t pack) const;
  /// The window of a pack of an endless order.
  PackWindow WindowOf(std::int64_t pack) const;
  /// Starts at `window`: earlier windows are not read.
  void BeginAt(const PackWindow& window);
  /// The packs of the first `places` places, as if the order ended there. Of an endless order it reads about
  /// kOrderWindow places and extrapolates to the others.
  std::int64_t NumPacks(std::int64_t places) const;

 private:
  using Packs = std::vector<std::vector<std::int64_t>>;

  /// The packs of places [begin, end).
  Packs PacksOf(std::int64_t begin, std::int64_t end) const;
  /// The packs of a window. The lock must be held.
  const Packs& PacksIn(std::int64_t window) const;
  /// The window of a pack; none after the last pack. The lock must be held.
  std::optional<PackWindow> Find(std::int64_t pack) const;

  std::int64_t room_;
  std::int64_t window_;
  std::function<std::int64_t(std::int64_t)> tokens_at_;
  std::optional<std::int64_t> end_;
  mutable std::mutex mutex_;
  mutable std::int64_t first_window_ = 0;
  /// First pack of each window from `first_window_` on, as far as computed.
  mutable std::vector<std::int64_t> first_packs_ = {0};
  mutable std::map<std::int64_t, Packs> windows_;  ///< the latest few
};

}  // namespace troupe
