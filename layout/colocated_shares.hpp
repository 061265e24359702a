// Which replica of a colocated encoder encodes which sample of a microbatch.
#pragma once

#include <cstdint>
#include <vector>

#include "layout/grid.hpp"
#include "layout/route.hpp"

namespace troupe {

/// Spreads the samples of every language replica over the encoder replicas that share ranks with
/// it. Over any number of microbatches, counted from the first, two encoder replicas that are
/// linked (they share ranks with the same language replica, or are linked to the same encoder
/// replica) differ by at most one sample, and so they do within each microbatch. All encoder
/// replicas do where the language replicas have equally many samples.
///
/// The samples of a language replica lie on a line, one unit of length each, which is cut into one
/// arc per encoder replica. The arcs of one encoder replica, over all language replicas, follow
/// each other modulo 1, and a microbatch moves every arc by the length that an encoder replica has
/// in all. An arc takes the integers inside it. So encoder replica e takes in microbatch m those
/// between p + m * length and p + (m + 1) * length: what is left over in one microbatch is made up
/// for in the next. The arcs can follow each other because they form a forest: a cycle of encoder
/// and language replicas that share ranks is cut by moving lengths along it.
class ColocatedShares {
 public:
  /// What language replica l gives to encoder replica e, at [l][e].
  using Units = std::vector<std::vector<std::int64_t>>;

  /// Throws LayoutError when the grids are not on the same ranks.
  ColocatedShares(const Grid& encoder, const Grid& language);

  /// What each encoder replica holds of microbatch `microbatch` of a round, in sample order. The
  /// language replicas hold PartOf(num_samples, language dp, replica).
  Assignment Microbatch(std::int64_t num_samples, std::int64_t microbatch) const;

  /// The same of `microbatches` of them from number `first` on, one after the other: sample n of
  /// the m-th of these has number m * num_samples + n.
  Assignment Window(std::int64_t num_samples, std::int64_t first, std::int64_t microbatches) const;

  /// How many samples each encoder replica holds of `microbatches` of them from number `first` on.
  std::vector<std::int64_t> Counts(std::int64_t num_samples, std::int64_t first,
                                   std::int64_t microbatches) const;

  /// Microbatches after which the same samples fall to the same replicas again.
  std::int64_t period() const { return line_; }

 private:
  /// What one encoder replica takes of one language replica's line of `line_` units.
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

  /// Places the arcs of a language replica, the one of encoder replica `by` first, from the end of
  /// arc `after`; and those of all that is linked to it and not to `by`.
  void PlaceLine(const Units& forest, int language, int by, int after);
  /// Places what `encoder` takes of the language replicas other than `first`.
  void PlaceRest(const Units& forest, int encoder, int first, int after);

  int num_encoders_ = 0;
  int num_languages_ = 0;
  std::int64_t line_ = 0;  ///< ranks of a language replica
  std::vector<Arc> arcs_;
  std::vector<Component> components_;
};

}  // namespace troupe
