#include "layout/route.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "layout/at.hpp"

namespace troupe {

namespace {

constexpr int kNoShard = -1;

/// Where the rows of one sample are on one side of a boundary.
struct Place {
  int shard = kNoShard;
  std::int64_t row = 0;  ///< the sample's first row in the shard
};

/// One side of a boundary, by sample and by shard.
struct Side {
  std::vector<Place> places;       ///< by sample
  std::vector<std::int64_t> rows;  ///< by shard: the rows it holds
};

void Put(Place& place, Place at, std::int64_t sample, const char* side) {
  if (place.shard != kNoShard) {
    throw LayoutError("sample " + std::to_string(sample) + " is held by " + side + " shards " +
                      std::to_string(place.shard) + " and " + std::to_string(at.shard) +
                      ", expected one");
  }
  place = at;
}

void CheckInterval(const Interval& interval, std::int64_t num_samples, const char* side,
                   std::size_t shard) {
  if (interval.begin < 0 || interval.end < interval.begin || interval.end > num_samples) {
    throw LayoutError(std::string(side) + " shard " + std::to_string(shard) + " holds samples " +
                      std::to_string(interval.begin) + " to " + std::to_string(interval.end) +
                      ", expected them within 0 to " + std::to_string(num_samples));
  }
}

Side MakeSide(std::span<const std::int64_t> rows_per_sample, const Assignment& assignment,
              const char* side) {
  Side result;
  result.places.resize(rows_per_sample.size());
  const auto num_samples = static_cast<std::int64_t>(rows_per_sample.size());
  for (std::size_t shard = 0; shard < assignment.size(); ++shard) {
    std::int64_t row = 0;
    for (const Interval& interval : assignment[shard]) {
      CheckInterval(interval, num_samples, side, shard);
      for (std::int64_t sample = interval.begin; sample < interval.end; ++sample) {
        const auto n = static_cast<std::size_t>(sample);
        Put(result.places[n], {.shard = static_cast<int>(shard), .row = row}, sample, side);
        row += rows_per_sample[n];
      }
    }
    result.rows.push_back(row);
  }
  for (std::size_t n = 0; n < result.places.size(); ++n) {
    if (result.places[n].shard == kNoShard) {
      throw LayoutError("sample " + std::to_string(n) + " is held by no " + side + " shard");
    }
  }
  return result;
}

void CheckRows(std::span<const std::int64_t> rows_per_sample) {
  for (std::size_t n = 0; n < rows_per_sample.size(); ++n) {
    if (rows_per_sample[n] < 0) {
      throw LayoutError("sample " + std::to_string(n) + " has " +
                        std::to_string(rows_per_sample[n]) + " rows, expected 0 or more");
    }
  }
}

/// Whether `next` starts where `last` ends, on both sides, so that one message carries both. In the
/// destination it does if the shard is the same, because transfers are made in its order.
bool Continues(const Transfer& last, const Transfer& next) {
  return last.source == next.source && last.destination == next.destination &&
         last.samples.end == next.samples.begin && last.source_rows.end == next.source_rows.begin;
}

void Extend(std::vector<Transfer>& transfers, const Transfer& next) {
  if (transfers.empty() || !Continues(transfers.back(), next)) return transfers.push_back(next);
  transfers.back().samples.end = next.samples.end;
  transfers.back().source_rows.end = next.source_rows.end;
  transfers.back().destination_rows.end = next.destination_rows.end;
}

}  // namespace

Interval Intersect(const Interval& a, const Interval& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {.begin = begin, .end = std::max(begin, std::min(a.end, b.end))};
}

Interval PartOf(std::int64_t count, int parts, int index) {
  if (count < 0 || parts < 1 || index < 0 || index >= parts) {
    throw LayoutError("part " + std::to_string(index) + " of " + std::to_string(parts) + " of " +
                      std::to_string(count) + " items does not exist");
  }
  // Not index * count / parts, which overflows for large counts: quotient and remainder separately.
  const auto cut = [count, parts](std::int64_t i) {
    return i * (count / parts) + i * (count % parts) / parts;
  };
  return {.begin = cut(index), .end = cut(std::int64_t{index} + 1)};
}

Interval EqualPartOf(std::int64_t count, int parts, int index) {
  const std::int64_t each = (count + parts - 1) / parts;
  return {std::min(count, index * each), std::min(count, (index + 1) * each)};
}

Assignment EvenAssignment(std::int64_t num_samples, int parts) {
  return WindowAssignment(num_samples, 1, parts);
}

Assignment WindowAssignment(std::int64_t num_samples, int window, int parts) {
  if (window < 1) {
    throw LayoutError("window is " + std::to_string(window) + ", expected at least 1");
  }
  PartOf(num_samples, parts, 0);  // throws if the sizes are invalid
  Assignment assignment(At(parts));
  for (int shard = 0; shard < parts; ++shard) {
    const Interval part = PartOf(num_samples, parts, shard);
    for (std::int64_t first = 0; !part.empty() && first < window * num_samples;
         first += num_samples) {
      assignment[At(shard)].push_back({part.begin + first, part.end + first});
    }
  }
  return assignment;
}

Route MakeRoute(std::span<const std::int64_t> rows_per_sample, const Assignment& source,
                const Assignment& destination) {
  CheckRows(rows_per_sample);
  Side from = MakeSide(rows_per_sample, source, "source");
  Side to = MakeSide(rows_per_sample, destination, "destination");
  Route route;
  for (const std::vector<Interval>& shard : destination) {
    for (const Interval& interval : shard) {
      for (std::int64_t sample = interval.begin; sample < interval.end; ++sample) {
        const auto n = static_cast<std::size_t>(sample);
        const std::int64_t rows = rows_per_sample[n];
        Extend(route.transfers, {.source = from.places[n].shard,
                                 .destination = to.places[n].shard,
                                 .samples = {sample, sample + 1},
                                 .source_rows = {from.places[n].row, from.places[n].row + rows},
                                 .destination_rows = {to.places[n].row, to.places[n].row + rows}});
      }
    }
  }
  std::erase_if(route.transfers, [](const Transfer& t) { return t.source_rows.empty(); });
  route.source_rows = std::move(from.rows);
  route.destination_rows = std::move(to.rows);
  return route;
}

Route Inverse(const Route& route) {
  Route inverse;
  inverse.source_rows = route.destination_rows;
  inverse.destination_rows = route.source_rows;
  for (const Transfer& t : route.transfers) {
    inverse.transfers.push_back({.source = t.destination,
                                 .destination = t.source,
                                 .samples = t.samples,
                                 .source_rows = t.destination_rows,
                                 .destination_rows = t.source_rows});
  }
  std::ranges::sort(inverse.transfers, {}, [](const Transfer& transfer) {
    return std::pair(transfer.destination, transfer.destination_rows.begin);
  });
  return inverse;
}

}  // namespace troupe
