#include "data/batch.hpp"

#include <algorithm>

namespace troupe {

void FillText(std::span<const NumberedSample> samples, std::int64_t pad, Inputs& inputs) {
  std::size_t num_tokens = 1;
  for (const NumberedSample& each : samples) {
    num_tokens = std::max(num_tokens, each.sample.tokens.size());
  }
  const Shape shape = {std::ssize(samples), static_cast<std::int64_t>(num_tokens)};
  inputs.tokens = Buffer::Allocate(shape, DType::kInt64);
  inputs.labels = Buffer::Allocate(shape, DType::kInt64);
  inputs.content = Buffer::Zeros(shape, DType::kUInt8);
  std::fill_n(inputs.tokens.as<std::int64_t>(), NumElements(shape), pad);
  std::fill_n(inputs.labels.as<std::int64_t>(), NumElements(shape), kNoLabel);
  inputs.table = {};
  for (std::size_t b = 0; b < samples.size(); ++b) {
    const Sample& sample = samples[b].sample;
    const std::size_t begin = b * num_tokens;
    std::copy(sample.tokens.begin(), sample.tokens.end(), inputs.tokens.as<std::int64_t>() + begin);
    std::copy(sample.labels.begin(), sample.labels.end(), inputs.labels.as<std::int64_t>() + begin);
    std::copy(sample.content.begin(), sample.content.end(),
              inputs.content.as<std::uint8_t>() + begin);
    inputs.num_tokens += std::ssize(sample.tokens);
    inputs.table.samples.push_back(samples[b].number);
    inputs.table.rows.push_back(shape[1]);
  }
}

Buffer Positions(std::span<const NumberedSample> samples, std::size_t encoder,
                 std::int64_t num_tokens) {
  Buffer positions = Buffer::Allocate({EncoderRows(samples, encoder).num_rows()}, DType::kInt64);
  auto* next = positions.as<std::int64_t>();
  std::int64_t begin = 0;
  for (const NumberedSample& each : samples) {
    for (const std::int64_t t : each.sample.positions[encoder]) *next++ = begin + t;
    begin += num_tokens;
  }
  return positions;
}

RowTable EncoderRows(std::span<const NumberedSample> samples, std::size_t encoder) {
  RowTable table;
  for (const NumberedSample& each : samples) {
    table.samples.push_back(each.number);
    table.rows.push_back(std::ssize(each.sample.positions[encoder]));
  }
  return table;
}

}  // namespace troupe
