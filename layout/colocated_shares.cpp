#include "layout/colocated_shares.hpp"

#include <algorithm>
#include <optional>

#include "layout/at.hpp"

namespace troupe {
namespace {

using Units = ColocatedShares::Units;
constexpr int kNone = -1;

/// One entry of Units.
struct Link {
  int language = 0;
  int encoder = 0;
};

std::int64_t& UnitsOn(Units& units, Link link) {
  return units[At(link.language)][At(link.encoder)];
}
std::int64_t UnitsOn(const Units& units, Link link) {
  return units[At(link.language)][At(link.encoder)];
}

int NumLanguages(const Units& units) { return static_cast<int>(units.size()); }
int NumEncoders(const Units& units) { return static_cast<int>(units.front().size()); }

/// The links of a forest that lead from language replica `from` to encoder replica `to`, if any;
/// `came` is the encoder replica that the search came from.
std::optional<std::vector<Link>> Path(const Units& forest, int from, int to, int came = -1) {
  for (int encoder = 0; encoder < NumEncoders(forest); ++encoder) {
    const Link first{from, encoder};
    if (encoder == came || UnitsOn(forest, first) == 0) continue;
    if (encoder == to) return std::vector<Link>{first};
    for (int language = 0; language < NumLanguages(forest); ++language) {
      const Link second{language, encoder};
      if (language == from || UnitsOn(forest, second) == 0) continue;
      auto rest = Path(forest, language, to, encoder);
      if (!rest) continue;
      rest->insert(rest->begin(), {first, second});
      return rest;
    }
  }
  return std::nullopt;
}

/// Adds a link. If that closes a cycle, moves units along the cycle until one of its links has
/// none. The sums by language replica and by encoder replica do not change.
void Add(Units& forest, Link link, std::int64_t units) {
  const auto path = Path(forest, link.language, link.encoder);
  std::int64_t moved = path ? units : 0;
  for (std::size_t i = 1; path && i < path->size(); i += 2) {
    moved = std::min(moved, UnitsOn(forest, (*path)[i]));
  }
  for (std::size_t i = 0; path && i < path->size(); ++i) {
    UnitsOn(forest, (*path)[i]) += i % 2 == 0 ? moved : -moved;
  }
  UnitsOn(forest, link) = units - moved;
}

/// Shared ranks, without cycles.
Units ForestOf(const Grid& encoder, const Grid& language) {
  const Units none(At(language.layout().dp), std::vector<std::int64_t>(At(encoder.layout().dp), 0));
  Units shared = none;
  for (const int rank : encoder.ranks()) {
    ++UnitsOn(shared, {language.CoordinatesOf(rank).dp, encoder.CoordinatesOf(rank).dp});
  }
  Units forest = none;
  for (int l = 0; l < NumLanguages(shared); ++l) {
    for (int e = 0; e < NumEncoders(shared); ++e) {
      if (UnitsOn(shared, {l, e}) > 0) Add(forest, {l, e}, UnitsOn(shared, {l, e}));
    }
  }
  return forest;
}

/// Appends `interval`, or extends the last interval if it ends where `interval` begins.
void Join(std::vector<Interval>& intervals, Interval interval) {
  if (interval.empty()) return;
  if (!intervals.empty() && intervals.back().end == interval.begin) {
    intervals.back().end = interval.end;
  } else {
    intervals.push_back(interval);
  }
}

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

ColocatedShares::ColocatedShares(const Grid& encoder, const Grid& language)
    : num_encoders_(encoder.layout().dp),
      num_languages_(language.layout().dp),
      line_(language.layout().num_ranks() / language.layout().dp) {
  if (PlacementOf(encoder, language) != Placement::kColocated) {
    throw LayoutError("colocated grids share no rank, expected the same ranks");
  }
  const Units forest = ForestOf(encoder, language);
  for (int root = 0; root < num_languages_; ++root) {
    const bool placed =
        std::ranges::any_of(arcs_, [&](const Arc& a) { return a.language == root; });
    if (placed) continue;
    components_.push_back({arcs_.size(), 0, 0});
    PlaceLine(forest, root, kNone, kNone);
    components_.back().end = arcs_.size();
  }
}

void ColocatedShares::PlaceLine(const Units& forest, int language, int by, int after) {
  int last = after;
  const auto place = [&](int encoder) {
    const std::int64_t units = UnitsOn(forest, {language, encoder});
    if (units == 0) return;
    arcs_.push_back({language, encoder, units, last});
    last = static_cast<int>(arcs_.size()) - 1;
    if (encoder != by) PlaceRest(forest, encoder, language, last);
  };
  if (by != kNone) place(by);
  for (int encoder = 0; encoder < num_encoders_; ++encoder) {
    if (encoder != by) place(encoder);
  }
}

void ColocatedShares::PlaceRest(const Units& forest, int encoder, int first, int after) {
  ++components_.back().num_encoders;
  for (int language = 0; language < num_languages_; ++language) {
    if (language == first || UnitsOn(forest, {language, encoder}) == 0) continue;
    const int arc = static_cast<int>(arcs_.size());
    PlaceLine(forest, language, encoder, after);
    after = arc;
  }
}

Assignment ColocatedShares::Microbatch(std::int64_t num_samples, std::int64_t microbatch) const {
  // Positions and lengths are in units of 1 / line_ of a sample.
  std::vector<std::int64_t> ends;
  std::vector<Interval> parts;  // each language replica's samples not assigned yet
  for (int l = 0; l < num_languages_; ++l) parts.push_back(PartOf(num_samples, num_languages_, l));
  std::vector<std::vector<Interval>> held(At(num_encoders_));
  for (const Component& component : components_) {
    std::int64_t all = 0;
    std::vector<std::int64_t> lengths;
    for (std::size_t i = component.begin; i < component.end; ++i) {
      const Arc& arc = arcs_[i];
      lengths.push_back(parts[At(arc.language)].size() * arc.units);
      all += lengths.back();
    }
    const std::int64_t step = all / component.num_encoders % line_;
    for (std::size_t i = component.begin; i < component.end; ++i) {
      const Arc& arc = arcs_[i];
      const std::int64_t begin =
          arc.after == kNone ? microbatch % line_ * step : ends[At(arc.after)];
      ends.push_back(begin + lengths[i - component.begin]);
      const std::int64_t count = CeilDivide(ends.back(), line_) - CeilDivide(begin, line_);
      std::int64_t& next = parts[At(arc.language)].begin;
      held[At(arc.encoder)].push_back({next, next + count});
      next += count;
    }
  }
  Assignment assignment(held.size());
  for (std::size_t encoder = 0; encoder < held.size(); ++encoder) {
    std::ranges::sort(held[encoder], {}, &Interval::begin);
    for (const Interval& interval : held[encoder]) Join(assignment[encoder], interval);
  }
  return assignment;
}

Assignment ColocatedShares::Window(std::int64_t num_samples, std::int64_t first,
                                   std::int64_t microbatches) const {
  Assignment assignment(At(num_encoders_));
  for (std::int64_t m = 0; m < microbatches; ++m) {
    const Assignment held = Microbatch(num_samples, first + m);
    const std::int64_t offset = m * num_samples;
    for (std::size_t encoder = 0; encoder < held.size(); ++encoder) {
      for (const Interval& interval : held[encoder]) {
        assignment[encoder].push_back({interval.begin + offset, interval.end + offset});
      }
    }
  }
  return assignment;
}

std::vector<std::int64_t> ColocatedShares::Counts(std::int64_t num_samples, std::int64_t first,
                                                  std::int64_t microbatches) const {
  std::vector<std::int64_t> counts(At(num_encoders_), 0);
  for (std::int64_t m = 0; m < std::min(microbatches, period()); ++m) {
    const std::int64_t times = (microbatches - m - 1) / period() + 1;
    const Assignment held = Microbatch(num_samples, first + m);
    for (std::size_t encoder = 0; encoder < held.size(); ++encoder) {
      for (const Interval& interval : held[encoder]) counts[encoder] += times * interval.size();
    }
  }
  return counts;
}

}  // namespace troupe
