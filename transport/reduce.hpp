// Element-wise reductions of host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/buffer.hpp"
#include "transport/communicator.hpp"

namespace troupe {

/// Sums are computed in pieces of this size, which stay in the first-level cache until they have
/// been copied to their destinations.
inline constexpr std::size_t kReduceBlockBytes = 4096;
/// Slices begin on cache lines if the data does, so that no two members write the same line.
inline constexpr std::size_t kCacheLineBytes = 64;

/// output[i] = inputs[0][i] op inputs[1][i] op ..., from left to right for every i < count. So
/// equal inputs give equal bits, however the elements are cut. bfloat16 is summed as float and
/// rounded once at the end. A NaN stays a NaN under kMax; integer sums wrap around.
///   inputs  one pointer per member, at least one, each to `count` elements of `dtype`
///   output  `count` elements that overlap no input
void Reduce(std::span<const std::byte* const> inputs, std::int64_t count, DType dtype, ReduceOp op,
            std::byte* output);

/// The same, but `output` may be one of the inputs.
void ReduceOver(std::vector<const std::byte*> inputs, std::int64_t count, DType dtype, ReduceOp op,
                std::byte* output);

/// The type of partial sums of `dtype`, so that only the final result is rounded: float32 for
/// bfloat16, otherwise `dtype` itself.
DType PartialType(DType dtype, ReduceOp op);
/// Convert `count` elements from `dtype` to PartialType(dtype, kSum) and back with rounding. A copy
/// if the two are equal.
void ToPartial(const std::byte* values, std::int64_t count, DType dtype, std::byte* partial);
void FromPartial(const std::byte* partial, std::int64_t count, DType dtype, std::byte* values);

}  // namespace troupe
