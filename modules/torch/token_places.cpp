#include "modules/torch/token_places.hpp"

#include <map>
#include <utility>

namespace troupe {

TokenPlaces::TokenPlaces(std::vector<std::int64_t> lengths, std::int64_t width,
                         const ContextGroup& context)
    : lengths_(std::move(lengths)), width_(width), parts_(context.size()), part_(context.rank()) {
  if (!cut() || width == 0) return;
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
  return cut() ? flat.index_select(0, own_) : flat;
}

at::Tensor TokenPlaces::InOwn(const at::Tensor& places) const {
  if (!cut()) return places;
  const at::Tensor own = at::empty_like(places);
  for (std::int64_t i = 0; i < places.numel(); ++i) {
    const std::int64_t place = places.data_ptr<std::int64_t>()[i];
    own.data_ptr<std::int64_t>()[i] =
        place < 0 ? place : in_own_.at(static_cast<std::size_t>(place));
  }
  return own;
}

at::Tensor TokenPlaces::OnlyOwn(const at::Tensor& places) const {
  if (!cut()) return places;
  const at::Tensor own = InOwn(places);
  return own.masked_select(own.ge(0));
}

at::Tensor TokenPlaces::OfRows(const RowTable& whole) const {
  std::map<std::int64_t, std::int64_t> begins;  // of samples in in_own_
  for (std::size_t i = 0; i < whole.samples.size(); ++i) {
    begins[whole.samples[i]] = static_cast<std::int64_t>(i) * width_;
  }
  std::vector<std::int64_t> places;
  for (const RowRun& run : CutTable(whole, {RowCut::By::kContext, parts_}, part_).runs) {
    for (std::int64_t row = 0; row < run.count; ++row) {
      const std::int64_t place = begins.at(run.sample) + run.place + row;
      places.push_back(run.place < 0 ? -1 : in_own_.at(static_cast<std::size_t>(place)));
    }
  }
  return at::tensor(places, at::kLong);
}

std::vector<std::int64_t> TokenPlaces::TokensOf(std::size_t sample) const {
  const ContextChunks chunks = ChunksOf(lengths_[sample], parts_, part_);
  std::vector<std::int64_t> tokens;
  for (const Interval& chunk : {chunks.front, chunks.back}) {
    for (auto token = chunk.begin; token < chunk.end; ++token) tokens.push_back(token);
  }
  return tokens;
}

}  // namespace troupe
