// What a stage runs next: the one scheduling decision of the runtime, as a pure function. The Stage
// actor and every simulation of it use this and nothing else.
//
// 1f1b        run         when the devices are idle and                    (first line that holds)
//             forward f   f has arrived on every incoming link, its round  f = forwards
//                         has begun, fewer than `limit` units are in
//                         flight, and the round is still warming up
//             backward b  b's gradient came back on every outgoing link    b = backwards
//             forward f   as above, after the warm-up
// gpipe       forward f   f has arrived, its round has begun
//             backward b  b's gradient came back, and no forward of the round is left
// zb-h1       weights w   more than `weight_limit` - `limit` backwards wait for theirs, or the
//                         round has nothing else left
//             forward f   its round has begun, and fewer than `limit` units are in flight
//             backward b  else; computes the gradients of the inputs only
//             and waits for what the first of these lines that holds needs, whatever else is there;
//             but where `forwards_may_lack_room`, a backward that is there goes before a forward
//             that is not
// ordered     the next pass of `order`, when what it needs is there
//
// On a chain 1f1b is the schedule of that name (Narayanan et al. 2021, arXiv:2104.04473,
// PipeDream-Flush): `limit` is the distance to the sink plus one, so a stage warms up with that
// many forwards and then alternates. On a graph the same rule gives the dispatch of
// arXiv:2605.27678, appendix D. gpipe is Huang et al. 2018 (arXiv:1811.06965). zb-h1 is the
// handcrafted schedule of Qi et al. 2023 (arXiv:2401.10241): `weight_limit` is the largest `limit`
// of the module, so that no stage keeps more than the first one does under 1f1b. It is one order,
// whatever comes first: a stage that fills a wait of microseconds with weights makes all others
// wait for them. It cannot lock up: a forward needs a backward of a unit before it, so along any
// chain of needs the units fall, if there is room for as many units on the way to the stage as its
// `limit`. Where the stage's backwards are not split (it has nothing that trains) it is 1f1b.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// kWeight is the part of a backward that only the parameters need. Where a stage's backwards are
/// split, kBackward is the rest: the gradients of the inputs.
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

/// What a stage has seen and done so far, in units since the start of the run.
/// Always weights <= backwards <= gradients <= forwards <= activations and forwards <= horizon.
struct StageCounters {
  std::int64_t activations = 0;  ///< arrived on every incoming link
  std::int64_t forwards = 0;     ///< started
  std::int64_t gradients = 0;    ///< answered on every outgoing link; at a sink: forwards, once
                                 ///< a backward may follow
  std::int64_t backwards = 0;    ///< started, or retired where no backward is needed
  std::int64_t weights = 0;      ///< started, where backwards are split; else never looked at
  std::int64_t round_begin = 0;  ///< first unit of the current round
  std::int64_t horizon = 0;      ///< units that may go forward: the current round ends here
  bool busy = false;             ///< the devices have as many passes of this stage as they take
};

enum class RuleKind : std::uint8_t { k1F1B, kGpipe, kZbH1, kOrdered };

/// Which of the tables above a stage follows.
struct StageRule {
  RuleKind kind = RuleKind::k1F1B;
  std::int64_t limit = 1;         ///< 1f1b, zb-h1: StageGraph::InFlightLimit
  std::int64_t weight_limit = 1;  ///< zb-h1: units kept for their weights; at least `limit`
  /// zb-h1: a forward within `limit` may wait for a backward that comes later in the order.
  bool forwards_may_lack_room = false;
  bool splits_backward = false;  ///< zb-h1 where the stage trains; ordered: `order` has weights
  /// ordered: every round, units counted from its first; each kind's in ascending order, each unit
  /// once.
  std::vector<Pass> order = {};
};

/// The tables above.
std::optional<Pass> NextPass(const StageCounters& counters, const StageRule& rule);
/// The first of them.
std::optional<Pass> NextPass(const StageCounters& counters, std::int64_t limit);

/// Counts `pass` as started.
void CountStarted(StageCounters& counters, const Pass& pass);

/// Whether every pass of the rounds that have begun has been started.
bool AllStarted(const StageCounters& counters, const StageRule& rule);

}  // namespace troupe
