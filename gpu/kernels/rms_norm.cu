#include "gpu/kernels/device.hpp"
#include "gpu/kernels/launch.hpp"
#include "gpu/kernels/packs.hpp"
#include "gpu/kernels/rms_norm.hpp"

namespace troupe::gpu {
namespace {

constexpr int kWarp = 32;
/// Blocks that loop over the rows when the weights have a gradient. Each writes a separate sum.
constexpr std::int64_t kSums = SpareOfRmsNorm(1);
/// Threads of AddSums: columns by parts of the blocks' sums.
constexpr unsigned kColumns = 32;
constexpr unsigned kParts = 8;

/// Sums `value` over all threads of a block and returns it to each. `warps` [kThreads / kWarp] is
/// shared memory.
__device__ float SumOverBlock(float value, float* warps) {
  for (int other = kWarp / 2; other > 0; other /= 2) {
    value += __shfl_xor_sync(0xffffffffU, value, other);
  }
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0.0F;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += warps[warp];
  __syncthreads();  // `warps` is reused for the next row
  return sum;
}

/// One block per row, in a loop.
template <class Kind, int kCount>
__global__ void NormRows(const Pack<Kind, kCount>* __restrict__ x, const float* __restrict__ weight,
                         std::int64_t num_rows, std::int64_t hidden, float epsilon,
                         Pack<Kind, kCount>* __restrict__ y, float* __restrict__ rstd) {
  __shared__ float warps[kThreads / kWarp];
  const std::int64_t packs = hidden / kCount;
  for (std::int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
    float squares = 0.0F;
    for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      const Pack<Kind, kCount> in = x[row * packs + i];
      for (int k = 0; k < kCount; ++k) {
        const float value = Kind::Load(in.stored[k]);
        squares += value * value;
      }
    }
    const float sum = SumOverBlock(squares, warps);
    const float r = rsqrtf(sum / static_cast<float>(hidden) + epsilon);
    if (threadIdx.x == 0) rstd[row] = r;
    for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      const Pack<Kind, kCount> in = x[row * packs + i];
      const Floats<kCount> w(weight, i);
      Pack<Kind, kCount> out;
      for (int k = 0; k < kCount; ++k) {
        out.stored[k] = Kind::Round(Kind::Load(in.stored[k]) * r * w.values[k]);
      }
      y[row * packs + i] = out;
    }
  }
}

/// The gradient of NormRows. With kWeights, the block's part of the weights' gradient goes to
/// sums[blockIdx.x]; a thread has the same columns in every row.
template <class Kind, int kCount, bool kWeights>
__global__ void NormGradient(const Pack<Kind, kCount>* __restrict__ y_gradient,
                             const Pack<Kind, kCount>* __restrict__ x,
                             const float* __restrict__ weight, const float* __restrict__ rstd,
                             std::int64_t num_rows, std::int64_t hidden,
                             Pack<Kind, kCount>* __restrict__ x_gradient,
                             float* __restrict__ sums) {
  __shared__ float warps[kThreads / kWarp];
  __shared__ float columns[kWeights ? kMostHidden : 1];  // [kCount, packs]: free of bank conflicts
  const std::int64_t packs = hidden / kCount;
  if constexpr (kWeights) {
    for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      for (int k = 0; k < kCount; ++k) columns[k * packs + i] = 0.0F;
    }
  }
  for (std::int64_t row = blockIdx.x; row < num_rows; row += gridDim.x) {
    const float r = rstd[row];
    float products = 0.0F;
    for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      const Pack<Kind, kCount> g = y_gradient[row * packs + i];
      const Pack<Kind, kCount> in = x[row * packs + i];
      const Floats<kCount> w(weight, i);
      for (int k = 0; k < kCount; ++k) {
        const float product = Kind::Load(g.stored[k]) * Kind::Load(in.stored[k]);
        products += product * w.values[k];
        if constexpr (kWeights) columns[k * packs + i] += product * r;
      }
    }
    const float pull = SumOverBlock(products, warps) * r * r / static_cast<float>(hidden);
    for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      const Pack<Kind, kCount> g = y_gradient[row * packs + i];
      const Pack<Kind, kCount> in = x[row * packs + i];
      const Floats<kCount> w(weight, i);
      Pack<Kind, kCount> out;
      for (int k = 0; k < kCount; ++k) {
        const float value = Kind::Load(g.stored[k]) * w.values[k] - Kind::Load(in.stored[k]) * pull;
        out.stored[k] = Kind::Round(r * value);
      }
      x_gradient[row * packs + i] = out;
    }
  }
  if constexpr (kWeights) {
    for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      for (int k = 0; k < kCount; ++k) {
        sums[blockIdx.x * hidden + i * kCount + k] = columns[k * packs + i];
      }
    }
  }
}

/// Adds the blocks' sums to the gradient; a block handles kColumns columns.
__global__ void AddSums(const float* __restrict__ sums, std::int64_t num_sums, std::int64_t hidden,
                        float* __restrict__ weight_gradient) {
  __shared__ float parts[kParts][kColumns];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns + threadIdx.x;
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.y; column < hidden && i < num_sums; i += kParts) {
    sum += sums[i * hidden + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= hidden) return;
  for (unsigned part = 1; part < kParts; ++part) sum += parts[part][threadIdx.x];
  weight_gradient[column] += sum;
}

/// Threads for a row of `packs`: whole warps, at most kThreads, none idle throughout.
unsigned ThreadsFor(std::int64_t packs) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(CeilOf(packs, kWarp) * kWarp, kWarp, kThreads));
}

}  // namespace

void RmsNorm(StreamView stream, Row row, const void* x, const float* weight, std::int64_t num_rows,
             std::int64_t hidden, double epsilon, void* y, float* rstd) {
  if (num_rows == 0) return;
  WithPacks(row, hidden, PlaceOf(x) | PlaceOf(y) | PlaceOf(weight), [&](auto kind, auto count) {
    using Numbers = Pack<decltype(kind), decltype(count)::value>;
    const auto blocks = static_cast<unsigned>(std::min(num_rows, kMaxBlocks));
    Launch(NormRows<decltype(kind), decltype(count)::value>, blocks,
           ThreadsFor(hidden / decltype(count)::value), stream, static_cast<const Numbers*>(x),
           weight, num_rows, hidden, static_cast<float>(epsilon), static_cast<Numbers*>(y), rstd);
  });
}

void RmsNormGradient(StreamView stream, Row row, const void* y_gradient, const void* x,
                     const float* weight, const float* rstd, std::int64_t num_rows,
                     std::int64_t hidden, void* x_gradient, float* weight_gradient, float* spare) {
  if (num_rows == 0) return;
  const bool trains = weight_gradient != nullptr;
  const std::int64_t blocks = std::min(num_rows, trains ? kSums : kMaxBlocks);
  WithPacks(row, hidden, PlaceOf(y_gradient) | PlaceOf(x) | PlaceOf(x_gradient) | PlaceOf(weight),
            [&](auto kind, auto count) {
              using Kind = decltype(kind);
              constexpr int kCount = decltype(count)::value;
              using Numbers = Pack<Kind, kCount>;
              Launch(trains ? NormGradient<Kind, kCount, true> : NormGradient<Kind, kCount, false>,
                     static_cast<unsigned>(blocks), ThreadsFor(hidden / kCount), stream,
                     static_cast<const Numbers*>(y_gradient), static_cast<const Numbers*>(x),
                     weight, rstd, num_rows, hidden, static_cast<Numbers*>(x_gradient), spare);
            });
  if (!trains) return;
  Launch(AddSums, static_cast<unsigned>(CeilOf(hidden, kColumns)), dim3(kColumns, kParts), stream,
         static_cast<const float*>(spare), blocks, hidden, weight_gradient);
}

}  // namespace troupe::gpu
