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

/// What a norm's rows lie in besides its weight, which is float.
enum class Row : std::uint8_t { kFloat32, kBFloat16 };
/// Rows that a norm may have: [M, H] with H in [1, kMostHidden].
constexpr std::int64_t kMostHidden = 8192;
/// Floats of memory that a norm's gradient needs besides.
constexpr std::int64_t SpareOfRmsNorm(std::int64_t hidden) { return 512 * hidden; }

/// x and y [M, H] of `row`, weight [H] and rstd [M] float. Sums are made in float, in another order
/// than the loop's.
void RmsNorm(StreamView stream, Row row, const void* x, const float* weight, std::int64_t num_rows,
             std::int64_t hidden, double epsilon, void* y, float* rstd);
/// y_gradient, x and x_gradient [M, H] of `row`. Adds to weight_gradient [H] unless it is null;
/// `spare` [SpareOfRmsNorm(H)] is for that. The same bits in every run.
void RmsNormGradient(StreamView stream, Row row, const void* y_gradient, const void* x,
                     const float* weight, const float* rstd, std::int64_t num_rows,
                     std::int64_t hidden, void* x_gradient, float* weight_gradient, float* spare);

/// Each output [count] becomes input 0 op input 1 op ..., from left to right, with the bits of
/// troupe::Reduce (but which NaN a NaN is). An output may be an input.
void Reduce(StreamView stream, const Operands& operands, std::int64_t count, Element element,
            Reduction reduction);

}  // namespace troupe::gpu
