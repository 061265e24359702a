// Decides which replica of a colocated encoder encodes which sample of a microbatch.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/grid.hpp"
#include "layout/route.hpp"

namespace troupe {

/// Spreads the samples of every language replica over the encoder replicas that share ranks with
/// it. Two encoder replicas are linked if they share ranks with the same language replica, or if
/// both are linked to a third one. Within each microbatch, and over any number of microbatches
/// counted from the first, linked replicas differ by at most one sample. If all language replicas
/// have equally many samples, all encoder replicas differ by at most one.
///
/// The samples of a language replica form a line, one unit of length each. The line is cut into one
/// arc per encoder replica. The arcs of one encoder replica, over all language replicas, follow
/// each other modulo 1, and each microbatch moves every arc by the total length of an encoder
/// replica. An arc takes the integers inside it. So encoder replica e takes in microbatch m the
/// integers between p + m * length and p + (m + 1) * length: a remainder of one microbatch is made
/// up for in the next. The arcs can follow each other because they form a forest: a cycle of
/// encoder and language replicas that share ranks is cut by moving lengths along it.
class ColocatedShares {
 public:
  /// Units that language replica l gives to encoder replica e, at [l][e].
  using Units = std::vector<std::vector<std::int64_t>>;

  /// Throws LayoutError if the grids are not on the same ranks.
  ColocatedShares(const Grid& encoder, const Grid& language);

  /// The samples of microbatch `microbatch` of a round that each encoder replica holds, in sample
  /// order. The language replicas hold PartOf(num_samples, language dp, replica).
  Assignment Microbatch(std::int64_t num_samples, std::int64_t microbatch) const;

  /// Like Microbatch, for `microbatches` microbatches starting with number `first`. Sample n of the
  /// m-th of them has number m * num_samples + n.
  Assignment Window(std::int64_t num_samples, std::int64_t first, std::int64_t microbatches) const;

  /// The number of samples each encoder replica holds of the microbatches of Window.
  std::vector<std::int64_t> Counts(std::int64_t num_samples, std::int64_t first,
                                   std::int64_t microbatches) const;

  /// After this many microbatches the assignment of samples to replicas repeats.
  std::int64_t period() const { return line_; }

 private:
  /// The part of one language replica's line of `line_` units that one encoder replica takes.
  struct Arc {
    int language = 0;
    int encoder = 0;
    std::int64_t units = 0;
    int after = -1;  ///< the arc at whose end this one begins; -1 for the first of a component
  };
  /// Linked replicas: arcs [begin, end).
  struct Component {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int64_t num_encoders = 0;
  };

  /// Places the arcs of a language replica, starting at the end of arc `after` with the arc of
  /// encoder replica `by`; then those of all replicas linked to it other than through `by`.
  void PlaceLine(const Units& forest, int language, int by, int after);
  /// Places the arcs of `encoder` on the language replicas other than `first`.
  void PlaceRest(const Units& forest, int encoder, int first, int after);

  int num_encoders_ = 0;
  int num_languages_ = 0;
  std::int64_t line_ = 0;  ///< ranks of a language replica
  std::vector<Arc> arcs_;
  std::vector<Component> components_;
};

}  // namespace troupe
