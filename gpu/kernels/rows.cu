#include <algorithm>

#include "gpu/check.hpp"
#include "gpu/kernels/device.hpp"
#include "gpu/kernels/rows.hpp"
#include "gpu/stream.hpp"

namespace troupe::gpu {
namespace {

constexpr int kThreads = 256;
/// Enough blocks to fill a large device several times over; the rest are turns of a loop.
constexpr std::int64_t kMaxBlocks = 1 << 14;

enum class Move { kGather, kScatter, kTake };

/// One thread moves a word of a row and goes on a grid further: neighbours in a row are neighbours
/// in a warp, on both sides.
template <class Word, Move kMove>
__global__ void MoveRows(const Word* source, const std::int64_t* __restrict__ index,
                         std::int64_t num_words, std::int64_t words_per_row, Word* destination) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < num_words; i += stride) {
    const std::int64_t row = i / words_per_row;
    const std::int64_t there = index[row] * words_per_row + i % words_per_row;
    if constexpr (kMove == Move::kScatter) {
      destination[there] = source[i];
    } else {
      destination[i] = source[there];
    }
    if constexpr (kMove == Move::kTake) const_cast<Word*>(source)[there] = Word{};
  }
}

int BlocksFor(std::int64_t items) {
  return static_cast<int>(
      std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

template <class Word, Move kMove>
void MoveAs(StreamView stream, const std::byte* source, const std::int64_t* index,
            std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  const auto words_per_row = static_cast<std::int64_t>(row_bytes / sizeof(Word));
  const std::int64_t words = num_rows * words_per_row;
  MoveRows<Word, kMove><<<BlocksFor(words), kThreads, 0, stream.get()>>>(
      reinterpret_cast<const Word*>(source), index, words, words_per_row,
      reinterpret_cast<Word*>(destination));
  TROUPE_CUDA(cudaGetLastError());
}

/// In the widest words that rows and both places are multiples of.
template <Move kMove>
void MoveBytes(StreamView stream, const std::byte* source, const std::int64_t* index,
               std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  if (num_rows == 0 || row_bytes == 0) return;  // a grid of nothing is an error
  const auto all = reinterpret_cast<std::uintptr_t>(source) |
                   reinterpret_cast<std::uintptr_t>(destination) | row_bytes;
  if (all % sizeof(uint4) == 0) {
    MoveAs<uint4, kMove>(stream, source, index, num_rows, row_bytes, destination);
  } else if (all % sizeof(std::uint32_t) == 0) {
    MoveAs<std::uint32_t, kMove>(stream, source, index, num_rows, row_bytes, destination);
  } else {
    MoveAs<std::uint8_t, kMove>(stream, source, index, num_rows, row_bytes, destination);
  }
}

/// A warp per row.
__global__ void ChecksumRows(const std::uint32_t* __restrict__ rows, std::int64_t num_rows,
                             std::int64_t words_per_row, std::uint64_t* __restrict__ sums) {
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (blockDim.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (std::int64_t row =
           static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
       row < num_rows; row += warps) {
    std::uint64_t sum = 0;
    for (std::int64_t i = lane; i < words_per_row; i += 32) {
      sum += ChecksumOf(rows[row * words_per_row + i], static_cast<std::uint64_t>(i));
    }
    for (int other = 16; other > 0; other /= 2) sum += __shfl_down_sync(0xffffffffU, sum, other);
    if (lane == 0) sums[row] = sum;
  }
}

}  // namespace

void GatherRows(StreamView stream, const std::byte* source, const std::int64_t* index,
                std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  MoveBytes<Move::kGather>(stream, source, index, num_rows, row_bytes, destination);
}

void ScatterRows(StreamView stream, const std::byte* source, const std::int64_t* index,
                 std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  MoveBytes<Move::kScatter>(stream, source, index, num_rows, row_bytes, destination);
}

void TakeRows(StreamView stream, std::byte* rows, const std::int64_t* index,
              std::int64_t num_rows, std::size_t row_bytes, std::byte* taken) {
  MoveBytes<Move::kTake>(stream, rows, index, num_rows, row_bytes, taken);
}

void RowChecksums(StreamView stream, const std::byte* rows, std::int64_t num_rows,
                  std::size_t row_bytes, std::uint64_t* sums) {
  if (num_rows == 0) return;
  ChecksumRows<<<BlocksFor(num_rows * 32), kThreads, 0, stream.get()>>>(
      reinterpret_cast<const std::uint32_t*>(rows), num_rows,
      static_cast<std::int64_t>(row_bytes / sizeof(std::uint32_t)), sums);
  TROUPE_CUDA(cudaGetLastError());
}

}  // namespace troupe::gpu
