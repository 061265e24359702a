#include "modules/torch/token_places.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "kinds/work.hpp"

namespace troupe {
namespace {

/// `rows` with those outside of an interval as -1, and the others counted from its begin.
at::Tensor Within(const at::Tensor& rows, const Interval& interval) {
  const at::Tensor outside = rows.lt(interval.begin).logical_or_(rows.ge(interval.end));
  return (rows - interval.begin).masked_fill_(outside, -1);
}

std::map<std::int64_t, std::int64_t> ByPlace(const std::vector<std::int64_t>& lengths) {
  std::map<std::int64_t, std::int64_t> by_place;
  for (const std::int64_t length : lengths) by_place.emplace(std::ssize(by_place), length);
  return by_place;
}

}  // namespace

TokenPlaces::TokenPlaces(std::vector<std::int64_t> lengths, std::int64_t width, bool padded,
                         const BodyGroups& groups)
    : lengths_(std::move(lengths)),
      padded_(padded),
      parts_(groups.context->size()),
      part_(groups.context->rank()),
      slices_(groups.tensor->cuts_rows() ? groups.tensor->size() : 1),
      slice_(groups.tensor->rank()),
      tokens_(ByPlace(lengths_), {.by = RowCut::By::kContext, .parts = parts_, .pads = false},
              part_) {
  if (padded || width == 0) return;
  in_own_.assign(static_cast<std::size_t>(std::ssize(lengths_) * width), -1);
  std::vector<std::int64_t> own;
  for (std::size_t sample = 0; sample < lengths_.size(); ++sample) {
    for (const std::int64_t token : TokensOf(sample)) {
      const std::int64_t place = static_cast<std::int64_t>(sample) * width + token;
      in_own_.at(static_cast<std::size_t>(place)) = std::ssize(own);
      own.push_back(place);
    }
  }
  own_ = at::tensor(own, at::kLong);
}

at::Tensor TokenPlaces::Own(const at::Tensor& x) const {
  const at::Tensor flat = x.reshape({-1});
  return padded_ ? flat : flat.index_select(0, own_);
}

at::Tensor TokenPlaces::InPart(const at::Tensor& places) const {
  if (padded_) return places;
  const at::Tensor own = at::empty_like(places);
  for (std::int64_t i = 0; i < places.numel(); ++i) {
    const std::int64_t place = places.data_ptr<std::int64_t>()[i];
    own.data_ptr<std::int64_t>()[i] =
        place < 0 ? place : in_own_.at(static_cast<std::size_t>(place));
  }
  return own;
}

at::Tensor TokenPlaces::OfRows(const RowTable& whole, const RowCut& cut) const {
  std::map<std::int64_t, std::int64_t> places;
  for (const std::int64_t sample : whole.samples) places.emplace(sample, std::ssize(places));
  const RowTable own = SliceTable(CutTable(whole, cut, part_), cut, part_, slice_);
  std::vector<std::int64_t> rows;
  for (const RowRun& run : own.runs) {
    for (std::int64_t row = 0; row < run.count; ++row) {
      rows.push_back(run.place < 0 ? -1 : tokens_.RowOf(places.at(run.sample), run.place + row));
    }
  }
  return InSlice(at::tensor(rows, at::kLong));
}

at::Tensor TokenPlaces::InSlice(const at::Tensor& rows) const {
  return slices_ == 1 ? rows : Within(rows, SliceOf(slice_));
}

std::vector<std::int64_t> TokenPlaces::CountsOf(const at::Tensor& rows) const {
  const auto* const begin = rows.data_ptr<std::int64_t>();
  const auto* const end = begin + rows.numel();
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < slices_; ++rank) {
    const Interval slice = SliceOf(rank);
    counts.push_back(std::lower_bound(begin, end, slice.end) -
                     std::lower_bound(begin, end, slice.begin));
  }
  return counts;
}

std::vector<std::optional<TokenPlaces::Place>> TokenPlaces::RowsOfSlice(
    const std::vector<std::int64_t>& lengths, int slices, int slice) const {
  std::vector<std::optional<Place>> all;
  for (std::size_t sample = 0; sample < lengths_.size(); ++sample) {
    const std::int64_t length = lengths.empty() ? lengths_[sample] : lengths.at(sample);
    for (const std::int64_t token : TokensOf(sample)) {
      all.push_back(token < length ? std::optional(Place{sample, token}) : std::nullopt);
    }
  }
  const auto each = static_cast<std::size_t>(CeilDivide(std::ssize(all), slices));
  all.resize(each * static_cast<std::size_t>(slices));
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(each) * slice;
  return {begin, begin + static_cast<std::ptrdiff_t>(each)};
}

Interval TokenPlaces::SliceOf(int rank) const { return EqualPartOf(num_rows(), slices_, rank); }

std::vector<std::int64_t> TokenPlaces::TokensOf(std::size_t sample) const {
  const ContextChunks chunks = ChunksOf(lengths_[sample], parts_, part_);
  std::vector<std::int64_t> tokens;
  for (const Interval& chunk : {chunks.front, chunks.back}) {
    for (auto token = chunk.begin; token < chunk.end; ++token) tokens.push_back(token);
  }
  return tokens;
}

}  // namespace troupe
