#include "gpu/kernels/device.hpp"
#include "gpu/kernels/launch.hpp"
#include "gpu/kernels/stored.hpp"

namespace troupe::gpu {
namespace {

template <Reduction kReduction, class T>
__device__ T Combined(T a, T b) {
  if constexpr (kReduction == Reduction::kSum) {
    return static_cast<T>(a + b);
  } else {
    return (a < b || b != b) ? b : a;  // a NaN stays a NaN
  }
}

/// From the first input to the last, like the plain loop. An output may be an input, since a thread
/// reads all inputs of an element before it writes.
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
  const auto kernel = reduction == Reduction::kSum ? ReduceAll<Kind, Reduction::kSum>
                                                   : ReduceAll<Kind, Reduction::kMax>;
  Launch(kernel, BlocksFor(count), kThreads, stream, operands, count);
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
