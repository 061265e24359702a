// Builds the tensors of Inputs from samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/sample.hpp"
#include "modules/stage_program.hpp"

namespace troupe {

/// A sample and its number in the microbatch (or window).
struct NumberedSample {
  std::int64_t number = 0;
  Sample sample;
};

/// Fills tokens, labels and content, [B, T] with T the longest sample (at least 1), padded; and the
/// table, with T rows per sample.
void FillText(std::span<const NumberedSample> samples, std::int64_t pad, Inputs& inputs);

/// Returns the destinations of the rows of encoder `encoder`: [rows] int64, b * T + t with
/// `num_tokens` = T.
Buffer Positions(std::span<const NumberedSample> samples, std::size_t encoder,
                 std::int64_t num_tokens);

/// Returns the rows that each sample takes from encoder `encoder`.
RowTable EncoderRows(std::span<const NumberedSample> samples, std::size_t encoder);

}  // namespace troupe
