// Picks the next pass of a stage: the one scheduling decision of the runtime, as a pure function.
// The Stage actor and every simulation use this function and nothing else.
//
// 1f1b        run         when the devices are idle and                    (first line that holds)
//             forward f   f has arrived on every incoming link, its round  f = forwards
//                         has begun, fewer than `limit` units are in
//                         flight, and the round is still warming up
//             backward b  b's gradient returned on every outgoing link     b = backwards
//             forward f   as above, after the warm-up
// gpipe       forward f   f has arrived, its round has begun
//             backward b  b's gradient returned, and no forward of the round is left
// zb-h1       weights w   more than `weight_limit` - `limit` backwards wait for their weights, or
//                         the round has nothing else left
//             forward f   its round has begun, and fewer than `limit` units are in flight
//             backward b  else; computes the gradients of the inputs only
//             The first line that holds decides, and the stage waits for the inputs of that pass
//             even if another pass is ready. Exception: with `forwards_may_lack_room`, a ready
//             backward precedes a forward that is not ready.
// ordered     the next pass of `order`, when its inputs are ready
//
// With `fixed`, 1f1b and zb-h1 never decide by what has arrived: 1f1b is then the table of zb-h1 without
// its first line. With `window`, forwards of a window wait until all backwards of the window before have
// started. Stages that share experts need it: all of them run the same passes in the same order.
//
// On a chain 1f1b is the schedule of that name (Narayanan et al. 2021, arXiv:2104.04473,
// PipeDream-Flush): `limit` is the distance to the sink plus one, so a stage warms up with that
// many forwards and then alternates. On a graph the same rule gives the dispatch of
// arXiv:2605.27678, appendix D. gpipe is Huang et al. 2018 (arXiv:1811.06965). zb-h1 is the
// handcrafted schedule of Qi et al. 2023 (arXiv:2401.10241): `weight_limit` is the largest `limit`
// of the module, so that no stage keeps more than the first one does under 1f1b. Its order does not
// depend on arrivals: a stage that fills a wait of microseconds with weights would make all others
// wait for them. It cannot deadlock if the links to a stage hold as many units as its `limit`: a
// forward needs only backwards of earlier units, so units decrease along any chain of needs. A
// stage without split backwards (nothing in it trains) follows 1f1b.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// kWeight is the part of a split backward for the gradients of the parameters. kBackward is then
/// the rest: the gradients of the inputs.
enum class PassKind : std::uint8_t { kForward, kBackward, kWeight };

/// One unit of work of one stage. A unit is a microbatch, or a window of them for a colocated
/// encoder; units are numbered from the start of the run.
struct Pass {
  PassKind kind = PassKind::kForward;
  std::int64_t unit = 0;
  friend bool operator==(const Pass&, const Pass&) = default;
};

std::string ToString(const Pass& pass);                ///< "F3", "B3", "W3"
std::string ToString(const std::vector<Pass>& order);  ///< "F0 F1 B0"

/// The progress of a stage, in units since the start of the run.
/// Always weights <= backwards <= gradients <= forwards <= activations and forwards <= horizon.
struct StageCounters {
  std::int64_t activations = 0;  ///< arrived on every incoming link
  std::int64_t forwards = 0;     ///< started
  std::int64_t gradients = 0;    ///< answered on every outgoing link; at a sink: forwards, once
                                 ///< a backward may follow
  std::int64_t backwards = 0;    ///< started, or retired if no backward is needed
  std::int64_t weights = 0;      ///< started, if backwards are split; else unused
  std::int64_t round_begin = 0;  ///< first unit of the current round
  std::int64_t horizon = 0;      ///< end of the current round: units below it may go forward
  bool busy = false;             ///< the devices cannot take another pass of this stage
};

enum class RuleKind : std::uint8_t { k1F1B, kGpipe, kZbH1, kOrdered };

/// Selects one of the tables above for a stage.
struct StageRule {
  RuleKind kind = RuleKind::k1F1B;
  std::int64_t limit = 1;         ///< 1f1b, zb-h1: StageGraph::InFlightLimit
  std::int64_t weight_limit = 1;  ///< zb-h1: units kept for their weights; at least `limit`
  /// zb-h1: a forward within `limit` may wait for a backward that comes later in the order.
  bool forwards_may_lack_room = false;
  bool splits_backward = false;  ///< zb-h1: the stage trains; ordered: `order` has weights
  bool fixed = false;            ///< the order of passes does not depend on arrivals
  std::optional<std::int64_t> window = {};  ///< fixed: units of a window, if windows alternate
  /// ordered: the passes of every round, units counted from its first; the units of each kind
  /// ascend, each once.
  std::vector<Pass> order = {};
};

/// Applies the tables above.
std::optional<Pass> NextPass(const StageCounters& counters, const StageRule& rule);

/// The pass of that kind that starts after those counted.
Pass NextOf(PassKind kind, const StageCounters& counters);

/// The unit whose backward comes next, weights aside, if all inputs are there; none: a forward comes
/// first, or nothing does.
std::optional<std::int64_t> NextBackward(StageCounters counters, const StageRule& rule);

/// Counts `pass` as started.
void CountStarted(StageCounters& counters, const Pass& pass);

/// Whether every pass of all begun rounds has started.
bool AllStarted(const StageCounters& counters, const StageRule& rule);

}  // namespace troupe
