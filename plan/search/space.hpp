// The layouts, placements and schedules that a plan may choose from, with their closed-form costs: a
// problem for plan/search/choices.
//
// What is tried:
//   language model   tp 1, 2, 4, ... up to a node; cp 1, 2, 4, ... with at least 256 tokens for a rank; pp,
//                    where more stages make the largest one smaller; dp that divides the global batch;
//                    1f1b, zb-h1 and interleaved with 2 or 4 stages per rank; ep that divides the
//                    experts; etp 1, 2, 4, ... up to a node, where it divides their width
//   microbatches     of 1, 2, 4, ... 64 samples per replica
//   encoders         inline in the language model; colocated with it; or on ranks of their own, with pp
//                    up to 8: those with devices of another kind always, on as few of these as do not
//                    make the step longer. tp and cp 1, 2, 4, ... up to a node; cp with at least 64 rows of an
//                    image for a rank, where twice the replicas would not divide the samples
//   windows          of colocated encoders: the step, half of it, and so on down to a microbatch, each
//                    time the largest divisor. Not with interleaved, which allows the step alone
// each with no recomputation, "mlp.up", "attention" with it, or "full"; inline encoders as configured.
// The language model offloads activations ("auto") besides, where it does not fit otherwise and copying
// what a layer keeps takes at most as long as its forward.
//
// The closed form, for stages whose passes of a microbatch take t_i, p of them, m microbatches:
//   1f1b         sum(t) + (m - 1) max(t)
//   interleaved  the same with ranks in place of stages, which fill in 1 / chunks of the time
//   zb-h1        m max(t) + (p - 1) (t less twice the weights)
// A pipeline over several ranks adds the time of a tensor to the next stage to each microbatch, and both
// ways to the first. What follows the passes is CostOfUpdate. Colocated encoders run before and after
// each window, for which the pipeline fills and drains.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "configs/config.hpp"
#include "plan/cost/job_devices.hpp"
#include "plan/cost/unit_work.hpp"
#include "plan/search/choices.hpp"

namespace troupe {

/// How the sink runs.
struct SinkPoint {
  Layout layout = {};
  std::int64_t micro_batch_size = 1;
  std::int64_t microbatches = 1;
  ScheduleKind kind = ScheduleKind::k1F1B;
  int chunks = 1;
  Recompute recompute = {};
  bool offloads = false;    ///< activations, "auto"
  unsigned inlined = 0;     ///< bit i: encoder i runs inside
  std::int64_t window = 0;  ///< of colocated encoders, as ScheduleConfig::window
  /// Windows of a step.
  std::int64_t num_windows() const { return window == 0 ? 1 : microbatches / window; }
};

/// How an encoder runs.
struct EncoderPoint {
  Placement placement = Placement::kInline;
  Layout layout = {};
  Recompute recompute = {};
  bool on_own_devices = false;  ///< of another kind
  friend bool operator==(const EncoderPoint&, const EncoderPoint&) = default;
};

/// Limits of the search.
struct SearchLimits {
  int ranks = 1;          ///< devices of the main kind that there are
  double reserve = 0.06;  ///< share of a device's memory that stays free
  AverageWork average = {};
};

/// One choice, with what it takes by the closed form.
struct PlannedJob {
  SinkPoint sink;
  std::vector<EncoderPoint> encoders;  ///< in the order of the file
  int ranks = 0;
  std::vector<int> node_sizes = {};  ///< ranks of each node, in their order; empty: one has all
  double step_s = 0.0;
};

class SearchSpace {
 public:
  /// `config` says what the modules are, and the global batch. Throws LayoutError for a graph other than
  /// one sink that all others feed directly.
  SearchSpace(const Config& config, const JobDevices& devices, const SearchLimits& limits);
  ~SearchSpace();
  SearchSpace(const SearchSpace&) = delete;
  SearchSpace& operator=(const SearchSpace&) = delete;

  /// Returns the choices within `within` times the fastest, best first; at most one for each way to run
  /// the sink. Empty if nothing fits.
  std::vector<PlannedJob> Best(double within) const;
  /// Returns the number of ways to run the sink, and how many of them Best priced so far.
  std::size_t num_ways() const;
  std::size_t num_priced() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Returns `config` with the layout, ranks and schedule of `job`.
Config Applied(Config config, const PlannedJob& job);
/// Returns the same as KEY=VALUE for troupe's --set, in the order of the file.
std::vector<std::string> SettingsOf(const Config& config, const PlannedJob& job);

}  // namespace troupe
