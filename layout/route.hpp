// Which rows of a boundary tensor go from which source shard to which destination shard.
// Everything here is arithmetic on sample numbers and row counts; no value is scaled.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/grid.hpp"

namespace troupe {

/// Half-open: begin <= i < end.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool Contains(std::int64_t i) const { return begin <= i && i < end; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// The common part of both. If there is none, an empty interval at the later begin.
Interval Intersect(const Interval& a, const Interval& b);

/// Part `index` of `count` items cut into `parts` as evenly as order allows:
/// [index*count/parts, (index+1)*count/parts), rounded down. Throws LayoutError for a part that
/// does not exist.
Interval PartOf(std::int64_t count, int parts, int index);

/// The same in parts of equal size, rounded up: the last ones are shorter or empty.
Interval EqualPartOf(std::int64_t count, int parts, int index);

/// The samples each shard holds, as disjoint intervals in the order of their rows in the shard's
/// tensor. assignment[shard] may be empty; the functions here return no empty interval.
using Assignment = std::vector<std::vector<Interval>>;

/// PartOf for every shard: how a module of dp = `parts` splits the `num_samples` of a microbatch.
Assignment EvenAssignment(std::int64_t num_samples, int parts);

/// The same for `window` microbatches of `num_samples` each, concatenated: shard s holds its part
/// of microbatch 0, then of microbatch 1, ... Sample n of microbatch m has number m * num_samples +
/// n. One interval per microbatch, none if the part is empty. Throws LayoutError if `window` or
/// `parts` is below 1.
Assignment WindowAssignment(std::int64_t num_samples, int window, int parts);

/// Rows [source_rows) of shard `source` are rows [destination_rows) of shard `destination`; both
/// have the same size and hold the samples of `samples`.
struct Transfer {
  int source = 0;
  int destination = 0;
  Interval samples;
  Interval source_rows;
  Interval destination_rows;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Every row of a boundary tensor exactly once, ordered by destination, then by row there.
struct Route {
  std::vector<Transfer> transfers;
  std::vector<std::int64_t> source_rows;       ///< rows each source shard holds
  std::vector<std::int64_t> destination_rows;  ///< rows each destination shard holds
};

/// The route between two assignments of the same samples. `rows_per_sample[n]` is the row count of
/// sample n and may be zero. Samples that are neighbours on both sides share one transfer. A
/// transfer without rows is left out.
///
/// Even assignments of dp a -> b make at most a + b - gcd(a, b) transfers: the cuts of both sides,
/// of which gcd(a, b) coincide. There are exactly as many if the number of samples is a multiple of
/// a and of b and no sample is empty; fewer if rounding moves two cuts to the same sample.
///
/// Throws LayoutError if a sample is held by no shard or by two on either side, is unknown, or has
/// a negative row count.
Route MakeRoute(std::span<const std::int64_t> rows_per_sample, const Assignment& source,
                const Assignment& destination);

/// The route of the gradient: sources and destinations exchanged, nothing recomputed.
Route Inverse(const Route& route);

}  // namespace troupe
