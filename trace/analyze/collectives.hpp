// The time of collectives between replicas and of copies of activations, and how long other work waited
// for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/analyze/index.hpp"

namespace troupe {

/// Of all shards of one module, summed over its ranks.
struct CollectiveTime {
  std::string module;
  std::int64_t reduces = 0;  ///< sums of a bucket of gradients
  std::int64_t reduce_ns = 0;
  std::int64_t gathers = 0;  ///< of a bucket of parameters
  std::int64_t gather_ns = 0;
  std::int64_t exposed_ns = 0;  ///< passes, reductions and updates that waited for them
};

/// Of all shards of one module, summed over its ranks.
struct ActivationTime {
  std::string module;
  std::int64_t outs = 0;  ///< copies of the activations of a layer and microbatch off a device
  std::int64_t out_ns = 0;
  std::int64_t backs = 0;
  std::int64_t back_ns = 0;
  std::int64_t exposed_ns = 0;  ///< passes that waited for them
};

/// By module; those that were under way between `begin_ns` and `end_ns`, and only for that time.
std::vector<CollectiveTime> CollectiveTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns);

std::vector<ActivationTime> ActivationTimesOf(const TraceIndex& index, std::int64_t begin_ns,
                                              std::int64_t end_ns);

/// One line.
std::string Format(const CollectiveTime& time);
std::string Format(const ActivationTime& time);

}  // namespace troupe
