// Makes the tensors of a batch from prepared samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/prepared_sample.hpp"
#include "layout/row_table.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// A sample and its number in the microbatch (or window).
struct NumberedSample {
  std::int64_t number = 0;
  std::int64_t row = -1;  ///< in its set; -1: it only fills a place
  PreparedSample prepared = {};
};

/// Fills tokens, labels and content, [B, T] with T the longest sample (at least 1), padded; and the
/// table, with T rows per sample if the layers compute the padding, too.
void FillText(std::span<const NumberedSample> samples, std::int64_t pad, bool padded,
              Inputs& inputs);

/// Returns the rows that each sample takes from encoder `encoder`; with their places if an end of the
/// edge cuts them.
RowTable EncoderRows(std::span<const NumberedSample> samples, std::size_t encoder, bool cut);

/// Returns `places` of every sample for encoder `encoder`: [n] int64, b * T + t with `num_tokens` = T.
/// A place of -1 stays.
Buffer InBatch(std::span<const NumberedSample> samples,
               std::vector<std::vector<std::int64_t>> Sample::*places, std::size_t encoder,
               std::int64_t num_tokens);

/// Returns the items of encoder `encoder` in (sample, item) order.
FieldItems ItemsOf(std::span<const NumberedSample> samples, const ItemFormat& format,
                   std::size_t encoder);

}  // namespace troupe
