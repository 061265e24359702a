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

/// Element type of rows; weights and tables are float.
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

/// y [M, F] = silu(gate) * up, where a row of x [M, 2 F] is a row of gate, then one of up; both of
/// `row`.
void SwiGlu(StreamView stream, Row row, const void* x, std::int64_t num_rows, std::int64_t width,
            void* y);
/// The gradient of x, from that of y.
void SwiGluGradient(StreamView stream, Row row, const void* y_gradient, const void* x,
                    std::int64_t num_rows, std::int64_t width, void* x_gradient);

/// Where heads [S, L, h, D] are. A head is in one piece; strides are in elements.
struct HeadRows {
  void* data = nullptr;
  std::int64_t sequence_stride = 0;
  std::int64_t token_stride = 0;
  std::int64_t head_stride = 0;
};
struct HeadSizes {
  std::int64_t sequences = 0;  ///< S
  std::int64_t length = 0;     ///< L
  std::int64_t heads = 0;      ///< h
  std::int64_t head_dim = 0;   ///< D, even
};
/// Turns the first half of each head against the second by the angles of its token, of which cosine and
/// sine [L, D / 2] are the tables; `direction` -1 turns back. `from` and `to` do not overlap.
void TurnHeads(StreamView stream, Row row, const HeadRows& from, const HeadRows& to,
               const HeadSizes& sizes, const float* cosine, const float* sine, double direction);

/// Each output [count] becomes input 0 op input 1 op ..., from left to right. Bitwise equal to
/// troupe::Reduce, except for the payload of a NaN. An output may be an input.
void Reduce(StreamView stream, const Operands& operands, std::int64_t count, Element element,
            Reduction reduction);

}  // namespace troupe::gpu
