#include "gpu/kernels/device.hpp"
#include "gpu/kernels/launch.hpp"
#include "gpu/kernels/packs.hpp"

namespace troupe::gpu {
namespace {

__device__ float Sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

/// A block's threads are packs of a row; x and its gradient have two halves of `packs` in a row.
template <class Kind, int kCount>
__global__ void Gate(const Pack<Kind, kCount>* __restrict__ x, std::int64_t num_rows,
                     std::int64_t packs, Pack<Kind, kCount>* __restrict__ y) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  for (std::int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
    for (std::int64_t i = first; i < packs; i += step) {
      const Pack<Kind, kCount> gate = x[2 * row * packs + i];
      const Pack<Kind, kCount> up = x[(2 * row + 1) * packs + i];
      Pack<Kind, kCount> out;
      for (int k = 0; k < kCount; ++k) {
        const float g = Kind::Load(gate.stored[k]);
        out.stored[k] = Kind::Round(g * Sigmoid(g) * Kind::Load(up.stored[k]));
      }
      y[row * packs + i] = out;
    }
  }
}

template <class Kind, int kCount>
__global__ void GateGradient(const Pack<Kind, kCount>* __restrict__ y_gradient,
                             const Pack<Kind, kCount>* __restrict__ x, std::int64_t num_rows,
                             std::int64_t packs, Pack<Kind, kCount>* __restrict__ x_gradient) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  for (std::int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
    for (std::int64_t i = first; i < packs; i += step) {
      const std::int64_t at_gate = 2 * row * packs + i;
      const std::int64_t at_up = at_gate + packs;
      const Pack<Kind, kCount> gate = x[at_gate];
      const Pack<Kind, kCount> up = x[at_up];
      const Pack<Kind, kCount> gradient = y_gradient[row * packs + i];
      Pack<Kind, kCount> of_gate;
      Pack<Kind, kCount> of_up;
      for (int k = 0; k < kCount; ++k) {
        const float g = Kind::Load(gate.stored[k]);
        const float d = Kind::Load(gradient.stored[k]);
        const float sigmoid = Sigmoid(g);
        of_up.stored[k] = Kind::Round(d * g * sigmoid);
        const float slope = sigmoid * (1.0F + g * (1.0F - sigmoid));
        of_gate.stored[k] = Kind::Round(d * Kind::Load(up.stored[k]) * slope);
      }
      x_gradient[at_gate] = of_gate;
      x_gradient[at_up] = of_up;
    }
  }
}

dim3 BlocksOf(std::int64_t num_rows, std::int64_t packs) {
  return {static_cast<unsigned>(std::min(num_rows, kMaxBlocks)),
          static_cast<unsigned>(std::min<std::int64_t>(CeilOf(packs, kThreads), 16))};
}

}  // namespace

void SwiGlu(StreamView stream, Row row, const void* x, std::int64_t num_rows, std::int64_t width,
            void* y) {
  if (num_rows == 0 || width == 0) return;  // an empty grid is an error
  WithPacks(row, width, PlaceOf(x) | PlaceOf(y), [&](auto kind, auto count) {
    using Numbers = Pack<decltype(kind), decltype(count)::value>;
    const std::int64_t packs = width / decltype(count)::value;
    Launch(Gate<decltype(kind), decltype(count)::value>, BlocksOf(num_rows, packs), kThreads,
           stream, static_cast<const Numbers*>(x), num_rows, packs, static_cast<Numbers*>(y));
  });
}

void SwiGluGradient(StreamView stream, Row row, const void* y_gradient, const void* x,
                    std::int64_t num_rows, std::int64_t width, void* x_gradient) {
  if (num_rows == 0 || width == 0) return;
  WithPacks(row, width, PlaceOf(y_gradient) | PlaceOf(x) | PlaceOf(x_gradient),
            [&](auto kind, auto count) {
              using Numbers = Pack<decltype(kind), decltype(count)::value>;
              const std::int64_t packs = width / decltype(count)::value;
              Launch(GateGradient<decltype(kind), decltype(count)::value>,
                     BlocksOf(num_rows, packs), kThreads, stream,
                     static_cast<const Numbers*>(y_gradient), static_cast<const Numbers*>(x),
                     num_rows, packs, static_cast<Numbers*>(x_gradient));
            });
}

}  // namespace troupe::gpu
