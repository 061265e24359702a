// The kernels on a stream. Pointers are to memory of its device unless said; each call is queued
// and returns. What the numbers mean stands with the plain loops of the same names.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kernels/adamw.hpp"
#include "gpu/kernels/reduce.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/stream.hpp"

namespace troupe::gpu {

void GatherRows(StreamView stream, const std::byte* source, const std::int64_t* index,
                std::int64_t num_rows, std::size_t row_bytes, std::byte* destination);
void ScatterRows(StreamView stream, const std::byte* source, const std::int64_t* index,
                 std::int64_t num_rows, std::size_t row_bytes, std::byte* destination);
void TakeRows(StreamView stream, std::byte* rows, const std::int64_t* index, std::int64_t num_rows,
              std::size_t row_bytes, std::byte* taken);
void GatherSlices(StreamView stream, const Slices& slices);
void RowChecksums(StreamView stream, const std::byte* rows, std::int64_t num_rows,
                  std::size_t row_bytes, std::uint64_t* sums);

/// Besides, if `rounded` is not null: the new values rounded to bf16, [count], which is what
/// forwards read.
void ApplyAdamW(StreamView stream, const AdamWStep& step, std::int64_t count, const float* gradient,
                float* value, float* first, float* second, std::uint16_t* rounded);

/// Each output [count] becomes input 0 op input 1 op ..., from left to right, with the bits of
/// troupe::Reduce (but which NaN a NaN is). An output may be an input.
void Reduce(StreamView stream, const Operands& operands, std::int64_t count, Element element,
            Reduction reduction);

}  // namespace troupe::gpu
