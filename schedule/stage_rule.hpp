// What a stage runs next: the one scheduling decision of the runtime, as a pure function. The Stage
// actor and every simulation of it use this and nothing else.
//
//   run         when the devices are idle and                     (the first line that holds)
//   forward f   f has arrived on every incoming link, its round   f = forwards
//               has begun, fewer than `limit` units are in
//               flight, and the round is still warming up
//   backward b  b's gradient came back on every outgoing link     b = backwards
//   forward f   as above, after the warm-up
//
// On a chain this is 1F1B (Narayanan et al. 2021, arXiv:2104.04473, PipeDream-Flush): `limit` is
// the distance to the sink plus one, so a stage warms up with that many forwards and then
// alternates. On a graph the same rule gives the dispatch of arXiv:2605.27678, appendix D.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

enum class PassKind : std::uint8_t { kForward, kBackward };

/// One unit of work of one stage. A unit is a microbatch, or a window of them for a colocated
/// encoder; units are numbered from the start of the run.
struct Pass {
  PassKind kind = PassKind::kForward;
  std::int64_t unit = 0;
  friend bool operator==(const Pass&, const Pass&) = default;
};

std::string ToString(const Pass& pass);                ///< "F3", "B3"
std::string ToString(const std::vector<Pass>& order);  ///< "F0 F1 B0"

/// What a stage has seen and done so far, in units since the start of the run.
/// Always backwards <= gradients <= forwards <= activations and forwards <= horizon.
struct StageCounters {
  std::int64_t activations = 0;  ///< arrived on every incoming link
  std::int64_t forwards = 0;     ///< started
  std::int64_t gradients = 0;    ///< answered on every outgoing link; at a sink: forwards finished
  std::int64_t backwards = 0;    ///< started, or retired where no backward is needed
  std::int64_t round_begin = 0;  ///< first unit of the current round
  std::int64_t horizon = 0;      ///< units that may go forward: the current round ends here
  bool busy = false;             ///< the devices are running a pass of this stage
};

/// The table above. `limit` is StageGraph::InFlightLimit.
std::optional<Pass> NextPass(const StageCounters& counters, std::int64_t limit);

}  // namespace troupe
