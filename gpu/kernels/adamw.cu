#include "gpu/kernels/device.hpp"
#include "gpu/kernels/launch.hpp"
#include "gpu/kernels/stored.hpp"

namespace troupe::gpu {
namespace {

constexpr std::int64_t kWidth = 4;  ///< elements per load: 16 bytes

__device__ float Updated(const AdamWFactors<float>& f, float gradient, float value, float& first,
                         float& second) {
  const float g = gradient * f.scale;
  first = f.beta1 * first + f.rest1 * g;
  second = f.beta2 * second + f.rest2 * g * g;
  return f.keep * value - f.rate * first / (sqrtf(second) * f.root + f.epsilon);
}

// Loads the first `vectors` groups of kWidth elements as one, if the alignment of all pointers
// allows it.
template <bool kRounds>
__global__ void Update(AdamWFactors<float> f, std::int64_t count, std::int64_t vectors,
                       const float* __restrict__ gradient, float* __restrict__ value,
                       float* __restrict__ first, float* __restrict__ second,
                       std::uint16_t* __restrict__ rounded) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = begin; i < vectors; i += stride) {
    const float4 g = reinterpret_cast<const float4*>(gradient)[i];
    float4 v = reinterpret_cast<float4*>(value)[i];
    float4 m = reinterpret_cast<float4*>(first)[i];
    float4 s = reinterpret_cast<float4*>(second)[i];
    v.x = Updated(f, g.x, v.x, m.x, s.x);
    v.y = Updated(f, g.y, v.y, m.y, s.y);
    v.z = Updated(f, g.z, v.z, m.z, s.z);
    v.w = Updated(f, g.w, v.w, m.w, s.w);
    reinterpret_cast<float4*>(value)[i] = v;
    reinterpret_cast<float4*>(first)[i] = m;
    reinterpret_cast<float4*>(second)[i] = s;
    if constexpr (kRounds) {
      reinterpret_cast<ushort4*>(rounded)[i] = make_ushort4(
          Rounded::Round(v.x), Rounded::Round(v.y), Rounded::Round(v.z), Rounded::Round(v.w));
    }
  }
  for (std::int64_t i = vectors * kWidth + begin; i < count; i += stride) {
    value[i] = Updated(f, gradient[i], value[i], first[i], second[i]);
    if constexpr (kRounds) rounded[i] = Rounded::Round(value[i]);
  }
}

}  // namespace

void ApplyAdamW(StreamView stream, const AdamWStep& step, std::int64_t count, const float* gradient,
                float* value, float* first, float* second, std::uint16_t* rounded) {
  if (count == 0) return;
  const AdamWFactors<float> factors(step);
  const auto places =
      reinterpret_cast<std::uintptr_t>(gradient) | reinterpret_cast<std::uintptr_t>(value) |
      reinterpret_cast<std::uintptr_t>(first) | reinterpret_cast<std::uintptr_t>(second) |
      2 * reinterpret_cast<std::uintptr_t>(rounded);
  // A part of a flat tensor starts where the parameter before it ends, so it may be unaligned.
  const std::int64_t vectors = places % sizeof(float4) == 0 ? count / kWidth : 0;
  const std::int64_t items = vectors > 0 ? vectors : count;
  Launch(rounded != nullptr ? Update<true> : Update<false>, BlocksFor(items), kThreads, stream,
         factors, count, vectors, gradient, value, first, second, rounded);
}

}  // namespace troupe::gpu
