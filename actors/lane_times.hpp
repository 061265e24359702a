// How long a device with concurrent lanes was busy: time counts once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "modules/work_queue.hpp"

namespace troupe {

class LaneTimes {
 public:
  /// Counts a piece that ran on `lane` from `begin_ns` to `end_ns`, after those before it on the
  /// same lane. Returns the part of that time, 0 or more, in which no piece counted before ran on
  /// another lane.
  std::int64_t Count(Lane lane, std::int64_t begin_ns, std::int64_t end_ns);
  /// Nothing is left on `lane`: its next piece begins after all counted ones.
  void Emptied(Lane lane);

 private:
  struct Piece {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  /// By lane: pieces that may overlap future pieces of other lanes.
  std::array<std::vector<Piece>, kNumLanes> counted_;
};

}  // namespace troupe
