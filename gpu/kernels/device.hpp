// The device kernels. Pointers are to memory of the stream's device unless stated; each call queues
// work and returns. The plain loops of the same names document the arguments.
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

/// If `rounded` [count] is not null, also writes the new values rounded to bf16, for the forwards
/// to read.
void ApplyAdamW(StreamView stream, const AdamWStep& step, std::int64_t count, const float* gradient,
                float* value, float* first, float* second, std::uint16_t* rounded);

/// Element type of a norm's rows; its weight is float.
enum class Row : std::uint8_t { kFloat32, kBFloat16 };
/// The longest row of a norm: [M, H] with H in [1, kMostHidden].
constexpr std::int64_t kMostHidden = 8192;
/// Floats of scratch memory for a norm's gradient.
constexpr std::int64_t SpareOfRmsNorm(std::int64_t hidden) { return 512 * hidden; }

/// x and y [M, H] of `row`, weight [H] and rstd [M] float. Sums are computed in float, in another
/// order than in the plain loop.
void RmsNorm(StreamView stream, Row row, const void* x, const float* weight, std::int64_t num_rows,
             std::int64_t hidden, double epsilon, void* y, float* rstd);
/// y_gradient, x and x_gradient [M, H] of `row`. Adds to weight_gradient [H] unless it is null,
/// using `spare` [SpareOfRmsNorm(H)] as scratch memory. Bitwise reproducible.
void RmsNormGradient(StreamView stream, Row row, const void* y_gradient, const void* x,
                     const float* weight, const float* rstd, std::int64_t num_rows,
                     std::int64_t hidden, void* x_gradient, float* weight_gradient, float* spare);

/// Each output [count] becomes input 0 op input 1 op ..., from left to right. Bitwise equal to
/// troupe::Reduce, except for the payload of a NaN. An output may be an input.
void Reduce(StreamView stream, const Operands& operands, std::int64_t count, Element element,
            Reduction reduction);

}  // namespace troupe::gpu
