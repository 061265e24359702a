#include <algorithm>

#include "gpu/check.hpp"
#include "gpu/kernels/device.hpp"
#include "gpu/stream.hpp"

namespace troupe::gpu {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 14;

/// Memory holds Stored, sums are made in Value.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static __device__ Value Load(Stored stored) { return stored; }
  static __device__ Stored Round(Value value) { return value; }
};

struct Rounded {
  using Stored = std::uint16_t;
  using Value = float;
  static __device__ Value Load(Stored stored) {
    return __uint_as_float(static_cast<unsigned>(stored) << 16U);
  }
  /// As BFloat16 rounds, with its NaN.
  static __device__ Stored Round(Value value) {
    const unsigned word = __float_as_uint(value);
    if ((word & 0x7fffffffU) > 0x7f800000U) return 0x7fc0U;
    return static_cast<Stored>((word + 0x7fffU + ((word >> 16U) & 1U)) >> 16U);
  }
};

template <Reduction kReduction, class T>
__device__ T Combined(T a, T b) {
  if constexpr (kReduction == Reduction::kSum) {
    return static_cast<T>(a + b);
  } else {
    return (a < b || b != b) ? b : a;  // a NaN stays one
  }
}

/// From the first input to the last, as the plain loop: an output may be an input, since a thread
/// reads all of an element before it writes it.
template <class Kind, Reduction kReduction>
__global__ void ReduceAll(Operands operands, std::int64_t count) {
  using Stored = typename Kind::Stored;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    auto value = Kind::Load(reinterpret_cast<const Stored*>(operands.inputs[0])[i]);
    for (int member = 1; member < operands.num_inputs; ++member) {
      value = Combined<kReduction>(
          value, Kind::Load(reinterpret_cast<const Stored*>(operands.inputs[member])[i]));
    }
    const Stored result = Kind::Round(value);
    for (int member = 0; member < operands.num_outputs; ++member)
      reinterpret_cast<Stored*>(operands.outputs[member])[i] = result;
  }
}

template <class Kind>
void ReduceAs(StreamView stream, const Operands& operands, std::int64_t count,
              Reduction reduction) {
  const auto blocks =
      static_cast<int>(std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, kMaxBlocks));
  if (reduction == Reduction::kSum) {
    ReduceAll<Kind, Reduction::kSum><<<blocks, kThreads, 0, stream.get()>>>(operands, count);
  } else {
    ReduceAll<Kind, Reduction::kMax><<<blocks, kThreads, 0, stream.get()>>>(operands, count);
  }
  TROUPE_CUDA(cudaGetLastError());
}

}  // namespace

void Reduce(StreamView stream, const Operands& operands, std::int64_t count, Element element,
            Reduction reduction) {
  if (count == 0) return;
  switch (element) {
    case Element::kFloat32:
      return ReduceAs<Plain<float>>(stream, operands, count, reduction);
    case Element::kFloat64:
      return ReduceAs<Plain<double>>(stream, operands, count, reduction);
    case Element::kInt64:
      // Unsigned sums wrap around; maxima need the sign.
      if (reduction == Reduction::kSum)
        return ReduceAs<Plain<std::uint64_t>>(stream, operands, count, reduction);
      return ReduceAs<Plain<std::int64_t>>(stream, operands, count, reduction);
    case Element::kInt32:
      if (reduction == Reduction::kSum)
        return ReduceAs<Plain<std::uint32_t>>(stream, operands, count, reduction);
      return ReduceAs<Plain<std::int32_t>>(stream, operands, count, reduction);
    case Element::kUInt8:
      return ReduceAs<Plain<std::uint8_t>>(stream, operands, count, reduction);
    case Element::kBFloat16:
      return ReduceAs<Rounded>(stream, operands, count, reduction);
  }
}

}  // namespace troupe::gpu
