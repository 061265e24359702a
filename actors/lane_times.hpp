// How long a device was busy whose lanes run beside each other: time counts once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "modules/work_queue.hpp"

namespace troupe {

class LaneTimes {
 public:
  /// A piece on `lane` ran from `begin_ns` to `end_ns`, after those before it on the same lane. The
  /// ns of that, 0 or more, in which nothing counted before ran on another lane.
  std::int64_t Count(Lane lane, std::int64_t begin_ns, std::int64_t end_ns);
  /// Nothing is left on `lane`: what will run there begins after all that was counted.
  void Emptied(Lane lane);

 private:
  struct Piece {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  /// By lane, those that pieces of others may still have run beside.
  std::array<std::vector<Piece>, kNumLanes> counted_;
};

}  // namespace troupe
