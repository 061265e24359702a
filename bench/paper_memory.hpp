// The peak memory of a row of the paper, whose system is not Troupe's: bf16 weights and gradients, an
// optimizer of float32 that is divided over replicas, and the activations of Megatron-LM's layers.
#pragma once

#include "bench/paper_rows.hpp"

namespace troupe::bench {

/// Usable, of the 80 GB of a device.
inline constexpr double kCapacityGb = 79.0;

/// Returns the most GB (1e9 bytes) that a device holds. Expects regime and split to be set.
///   samples  of a microbatch
///   light    the gated activation of the language model is recomputed
double PeakGb(const PaperJob& job, double reserve_gb, int samples = 1, bool light = false);

/// Likewise, with the microbatch and the recomputation of `job` in a row with `others`, which share the
/// settings of the software: without a pipeline, a microbatch is two samples where these fit; if one of
/// the jobs does not fit, or has much state and no pipeline, all recompute the gated activation.
double MemoryGb(const PaperJob& job, const std::vector<PaperJob>& row, double reserve_gb);

}  // namespace troupe::bench
