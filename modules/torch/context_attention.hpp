// Attention of sequences that are cut over the ranks along cp, or that are not all of one length.
#pragma once

#include <cstdint>
#include <torch/types.h>
#include <vector>

#include "modules/torch/attention.hpp"
#include "modules/torch/context_group.hpp"

namespace troupe {

/// The part of a group that one rank has. A group is neighbouring sequences of one length.
struct ContextPart {
  AttentionPlanPtr plan;       ///< of its rows
  std::int64_t front = 0;      ///< causal: tokens of a sequence in the front chunk
  std::int64_t first_row = 0;  ///< of the group, in the rank's rows
  Interval rows() const { return {first_row, first_row + plan->sequences * plan->length}; }
};

/// Shared by all attention layers of a pass. Held by the graph.
struct ContextPlan : torch::CustomClassHolder {
  ContextGroupPtr group;
  std::vector<std::vector<ContextPart>> parts;  ///< [group][rank]
  std::vector<std::int64_t> counts;             ///< rows of each rank
};

using ContextPlanPtr = c10::intrusive_ptr<ContextPlan>;

/// Adds sequences of which each rank has `tokens[rank]` tokens; full attention. `like` has the heads.
void AddFullGroup(std::int64_t sequences, const std::vector<std::int64_t>& tokens,
                  const AttentionPlan& like, ContextPlan& plan);
/// Adds sequences of `length` tokens, which are cut by ChunksOf; causal attention. `like` has the heads,
/// and the tables of all positions or none.
void AddCausalGroup(std::int64_t sequences, std::int64_t length, const AttentionPlan& like,
                    ContextPlan& plan);

/// As Attention, of the own rows [plan.counts[rank], row_width]. Collective over the ranks along cp, in
/// the backward, too.
at::Tensor AttentionOverContext(const at::Tensor& qkv, const ContextPlanPtr& plan);

}  // namespace troupe
