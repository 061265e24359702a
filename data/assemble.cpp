#include "data/assemble.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void FillText(std::span<const NumberedSample> samples, std::int64_t pad, bool padded,
              Inputs& inputs) {
  std::size_t num_tokens = 1;
  for (const NumberedSample& each : samples) {
    num_tokens = std::max(num_tokens, each.prepared.sample.tokens.size());
  }
  const Shape shape = {std::ssize(samples), static_cast<std::int64_t>(num_tokens)};
  inputs.tokens = Buffer::Allocate(shape, DType::kInt64);
  inputs.labels = Buffer::Allocate(shape, DType::kInt64);
  inputs.content = Buffer::Zeros(shape, DType::kUInt8);
  std::fill_n(inputs.tokens.as<std::int64_t>(), NumElements(shape), pad);
  std::fill_n(inputs.labels.as<std::int64_t>(), NumElements(shape), kNoLabel);
  inputs.table = {};
  for (std::size_t b = 0; b < samples.size(); ++b) {
    const Sample& sample = samples[b].prepared.sample;
    const std::size_t begin = b * num_tokens;
    std::copy(sample.tokens.begin(), sample.tokens.end(), inputs.tokens.as<std::int64_t>() + begin);
    std::copy(sample.labels.begin(), sample.labels.end(), inputs.labels.as<std::int64_t>() + begin);
    std::copy(sample.content.begin(), sample.content.end(),
              inputs.content.as<std::uint8_t>() + begin);
    inputs.num_tokens += std::ssize(sample.tokens);
    inputs.table.samples.push_back(samples[b].number);
    inputs.table.rows.push_back(padded ? shape[1] : std::ssize(sample.tokens));
    inputs.table.lengths.push_back(std::ssize(sample.tokens));
  }
}

RowTable EncoderRows(std::span<const NumberedSample> samples, std::size_t encoder, bool cut) {
  RowTable table;
  for (const NumberedSample& each : samples) {
    const std::vector<std::int64_t>& places = each.prepared.sample.positions[encoder];
    table.samples.push_back(each.number);
    table.rows.push_back(std::ssize(places));
    if (!cut) continue;
    table.lengths.push_back(std::ssize(each.prepared.sample.tokens));
    for (std::size_t row = 0; row < places.size(); ++row) {
      AppendRow(each.number, static_cast<std::int64_t>(row), places[row], table.runs);
    }
  }
  return table;
}

Buffer InBatch(std::span<const NumberedSample> samples,
               std::vector<std::vector<std::int64_t>> Sample::*places, std::size_t encoder,
               std::int64_t num_tokens) {
  std::vector<std::int64_t> all;
  std::int64_t begin = 0;
  for (const NumberedSample& each : samples) {
    for (const std::int64_t t : (each.prepared.sample.*places)[encoder]) {
      all.push_back(t < 0 ? t : begin + t);
    }
    begin += num_tokens;
  }
  Buffer buffer = Buffer::Allocate({std::ssize(all)}, DType::kInt64);
  std::ranges::copy(all, buffer.as<std::int64_t>());
  return buffer;
}

FieldItems ItemsOf(std::span<const NumberedSample> samples, const ItemFormat& format,
                   std::size_t encoder) {
  std::vector<PreparedItem> all;
  for (const NumberedSample& each : samples) {
    if (each.row < 0) continue;
    const std::vector<PreparedItem>& items = each.prepared.items[encoder];
    all.insert(all.end(), items.begin(), items.end());
  }
  return Finished(all, format);
}

}  // namespace troupe
