#include "gpu/kernels/device.hpp"
#include "gpu/kernels/launch.hpp"
#include "gpu/kernels/packs.hpp"

namespace troupe::gpu {
namespace {

/// A block's threads are packs of half a head by heads; a block takes one token after the other. The
/// strides are in elements.
template <class Kind, int kCount>
__global__ void Turn(HeadRows from, HeadRows to, HeadSizes sizes, const float* __restrict__ cosine,
                     const float* __restrict__ sine, float direction) {
  using Numbers = Pack<Kind, kCount>;
  const std::int64_t half = sizes.head_dim / 2;
  const std::int64_t packs = half / kCount;
  const auto* const source = static_cast<const typename Kind::Stored*>(from.data);
  auto* const destination = static_cast<typename Kind::Stored*>(to.data);
  for (std::int64_t row = blockIdx.x; row < sizes.sequences * sizes.length; row += gridDim.x) {
    const std::int64_t sequence = row / sizes.length;
    const std::int64_t token = row % sizes.length;
    for (std::int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
      const Floats<kCount> c(cosine, token * packs + i);
      const Floats<kCount> s(sine, token * packs + i);
      for (std::int64_t head = threadIdx.y; head < sizes.heads; head += blockDim.y) {
        const auto place = [&](const HeadRows& rows) {
          return sequence * rows.sequence_stride + token * rows.token_stride +
                 head * rows.head_stride + i * kCount;
        };
        const auto* const in = source + place(from);
        auto* const out = destination + place(to);
        const Numbers first = *reinterpret_cast<const Numbers*>(in);
        const Numbers second = *reinterpret_cast<const Numbers*>(in + half);
        Numbers turned_first;
        Numbers turned_second;
        for (int k = 0; k < kCount; ++k) {
          const float a = Kind::Load(first.stored[k]);
          const float b = Kind::Load(second.stored[k]);
          const float turn = s.values[k] * direction;
          turned_first.stored[k] = Kind::Round(a * c.values[k] - b * turn);
          turned_second.stored[k] = Kind::Round(b * c.values[k] + a * turn);
        }
        *reinterpret_cast<Numbers*>(out) = turned_first;
        *reinterpret_cast<Numbers*>(out + half) = turned_second;
      }
    }
  }
}

std::int64_t StridesOf(const HeadRows& rows) {
  return rows.sequence_stride | rows.token_stride | rows.head_stride;
}

}  // namespace

void TurnHeads(StreamView stream, Row row, const HeadRows& from, const HeadRows& to,
               const HeadSizes& sizes, const float* cosine, const float* sine, double direction) {
  const std::int64_t rows = sizes.sequences * sizes.length;
  if (rows == 0 || sizes.heads == 0) return;  // an empty grid is an error
  const std::int64_t half = sizes.head_dim / 2;
  WithPacks(row, half | StridesOf(from) | StridesOf(to),
            PlaceOf(from.data) | PlaceOf(to.data) | PlaceOf(cosine) | PlaceOf(sine),
            [&](auto kind, auto count) {
              const std::int64_t packs = half / decltype(count)::value;
              const auto across = static_cast<unsigned>(std::min<std::int64_t>(packs, kThreads));
              const auto heads = std::min<std::int64_t>(sizes.heads, kThreads / across);
              Launch(Turn<decltype(kind), decltype(count)::value>,
                     static_cast<unsigned>(std::min(rows, kMaxBlocks)),
                     dim3(across, static_cast<unsigned>(heads)), stream, from, to, sizes, cosine,
                     sine, static_cast<float>(direction));
            });
}

}  // namespace troupe::gpu
