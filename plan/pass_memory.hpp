// What passes need of a rank's memory: activations that units keep until their backward, and what a
// pass has for a while.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "kinds/work.hpp"
#include "plan/stage_parts.hpp"

namespace troupe {

class JobPlan;
struct EdgePlan;
struct StagePlan;

/// Returns the elements of activations that a part of a stage keeps for its backward, for `work` of the
/// module on whose ranks it runs. Of a module's layers those of `layers`, if it is stated.
std::int64_t KeptElements(const Config& config, const StagePart& part, const RankWork& work,
                          const std::optional<StagePlace>& layers = std::nullopt);

/// Returns how many of them there are while only the work for weights is deferred: what was computed
/// again is there, too.
std::int64_t OwedElements(const Config& config, const StagePart& part, const RankWork& work,
                          const std::optional<StagePlace>& layers = std::nullopt);

/// Bytes of a microbatch on one rank of a stage.
struct UnitMemory {
  std::size_t kept = 0;          ///< activations from the forward to the backward
  std::size_t owed = 0;          ///< the same while only its work for weights is deferred
  std::size_t away = 0;          ///< the part of `kept` that is in host memory until its backward
  std::size_t largest_away = 0;  ///< that part of one layer
  std::size_t forward = 0;       ///< what a forward has for a while, besides `kept`
  /// What a backward has for a while at its end, when deferred work holds what was computed again.
  std::size_t last = 0;
  std::size_t backward = 0;  ///< likewise a backward, which begins with all that is kept
};

/// Bytes of an element of rows.
std::size_t RowElementBytes(const Config& config);

/// Counts the parts that run a backward (plan/stage_parts.hpp), with full samples and as many images as
/// MostItemsOfSample says. If an encoder is frozen and its projector trains, only the projector's count.
UnitMemory EstimateUnit(const Config& config, const std::string& module, int pp);

/// Returns the bytes that leave a rank between the forward of a stage and its backward
/// (ModuleConfig::offload_activations), for so many full samples of a replica.
std::size_t AwayBytes(const Config& config, const std::string& module, int pp,
                      std::int64_t samples);

/// Returns what a rank holds of activations of `away` bytes that leave it, in `units` units, if the layer
/// with most has `largest`: a layer that runs, one on its way out, and one that returns for the next
/// backward. Of `owed` units the work for weights is deferred, which holds all of them.
template <class Number>
Number HereOf(Number away, Number largest, Number units, Number owed) {
  const Number here = largest * (units > Number{1} ? Number{3} : Number{2}) + away * owed;
  return std::min(away * units, here);
}

/// Returns the elements of a row that crosses the edge: of the projector's outputs if it runs at the sending
/// end.
std::int64_t RowWidthOn(const JobPlan& plan, const EdgePlan& edge);

/// Returns the bytes of a microbatch's rows as they arrive on a rank at the end of an edge.
std::size_t ArrivingBytes(const JobPlan& plan, const EdgePlan& edge);
/// The same, of so many samples of a replica.
std::size_t ArrivingBytes(const Config& config, const EdgeConfig& edge, std::int64_t samples);

/// Returns the bytes of a microbatch's rows between layers on a rank, if tp does not cut them.
std::size_t RowBytesOf(const Config& config, const ModuleConfig& module);

/// Returns the bytes of tensors that a stage has received before a pass needs them, or that wait to be
/// sent: of one microbatch for each stage before and after it in its module, and of each edge.
std::size_t TransitBytes(const JobPlan& plan, const StagePlan& stage);

/// Bytes on one rank while it holds most.
struct HeldByPasses {
  std::size_t activations = 0;  ///< of all units kept
  std::size_t workspace = 0;    ///< of the pass that runs
  std::size_t total() const { return activations + workspace; }
};

/// Returns by stage what the rank holds of it when it holds most of all together. `units`: by stage of
/// the rank.
std::map<int, HeldByPasses> HeldOnRank(const JobPlan& plan, const std::map<int, UnitMemory>& units);

}  // namespace troupe
