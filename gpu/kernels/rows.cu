#include <algorithm>

#include "gpu/kernels/device.hpp"
#include "gpu/kernels/launch.hpp"
#include "gpu/kernels/rows.hpp"

namespace troupe::gpu {
namespace {

/// This many blocks fill a device.
constexpr std::int64_t kEnoughBlocks = 2048;

enum class Move { kGather, kScatter, kTake };

/// Rows that a thread moves at once. Their loads do not wait for each other.
constexpr int kRowsAtOnce = 4;

/// A block's threads are rows by words of a row: neighbours in a row are neighbours in a warp, on
/// both sides, and no thread divides.
template <class Word, Move kMove>
__global__ void MoveRows(const Word* source, const std::int64_t* __restrict__ index,
                         std::int64_t num_rows, std::int64_t words_per_row, Word* destination) {
  const std::int64_t rows_of_block = static_cast<std::int64_t>(blockDim.y) * kRowsAtOnce;
  const std::int64_t words_at_once = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  const std::int64_t first_word = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  for (std::int64_t first = blockIdx.x * rows_of_block + threadIdx.y; first < num_rows;
       first += gridDim.x * rows_of_block) {
    std::int64_t from[kRowsAtOnce];
    std::int64_t to[kRowsAtOnce];
    for (int k = 0; k < kRowsAtOnce; ++k) {
      const std::int64_t row = first + k * blockDim.y;
      if (row >= num_rows) continue;
      from[k] = (kMove == Move::kScatter ? row : index[row]) * words_per_row;
      to[k] = (kMove == Move::kScatter ? index[row] : row) * words_per_row;
    }
    for (std::int64_t i = first_word; i < words_per_row; i += words_at_once) {
      Word words[kRowsAtOnce];
      for (int k = 0; k < kRowsAtOnce; ++k) {
        if (first + k * blockDim.y < num_rows) words[k] = source[from[k] + i];
      }
      for (int k = 0; k < kRowsAtOnce; ++k) {
        if (first + k * blockDim.y >= num_rows) continue;
        destination[to[k] + i] = words[k];
        if constexpr (kMove == Move::kTake) const_cast<Word*>(source)[from[k] + i] = Word{};
      }
    }
  }
}

template <class Word, Move kMove>
void MoveAs(StreamView stream, const std::byte* source, const std::int64_t* index,
            std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  const auto words_per_row = static_cast<std::int64_t>(row_bytes / sizeof(Word));
  unsigned width = 1;
  while (width < kThreads && width < words_per_row) width *= 2;
  const dim3 threads(width, kThreads / width);
  // Blocks share a row only if there are too few rows for all blocks.
  const std::int64_t rows =
      std::min(CeilOf(num_rows, std::int64_t{threads.y} * kRowsAtOnce), kMaxBlocks);
  const std::int64_t along = std::min(CeilOf(words_per_row, width), CeilOf(kEnoughBlocks, rows));
  const dim3 blocks(static_cast<unsigned>(rows),
                    static_cast<unsigned>(std::max<std::int64_t>(along, 1)));
  Launch(MoveRows<Word, kMove>, blocks, threads, stream, reinterpret_cast<const Word*>(source),
         index, num_rows, words_per_row, reinterpret_cast<Word*>(destination));
}

/// Calls `move(Word{})` with the widest word that divides `all`, the bitwise or of addresses and
/// sizes in bytes.
template <class MoveWords>
void InWidestWords(std::uintptr_t all, const MoveWords& move) {
  if (all % sizeof(uint4) == 0) {
    move(uint4{});
  } else if (all % sizeof(std::uint32_t) == 0) {
    move(std::uint32_t{});
  } else {
    move(std::uint8_t{});
  }
}

template <Move kMove>
void MoveBytes(StreamView stream, const std::byte* source, const std::int64_t* index,
               std::int64_t num_rows, std::size_t row_bytes, std::byte* destination) {
  if (num_rows == 0 || row_bytes == 0) return;  // an empty grid is an error
  const auto all = reinterpret_cast<std::uintptr_t>(source) |
                   reinterpret_cast<std::uintptr_t>(destination) | row_bytes;
  InWidestWords(all, [&](auto word) {
    MoveAs<decltype(word), kMove>(stream, source, index, num_rows, row_bytes, destination);
  });
}

/// Blocks are slices by parts of the longest slice.
template <class Word>
__global__ void CopySlices(const __grid_constant__ Slices slices) {
  const auto* const from = reinterpret_cast<const Word*>(slices.from[blockIdx.y]);
  auto* const to = reinterpret_cast<Word*>(slices.to[blockIdx.y]);
  const auto num_words = static_cast<std::int64_t>(slices.num_bytes[blockIdx.y] / sizeof(Word));
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < num_words; i += stride) {
    to[i] = from[i];
  }
}

/// One warp per row.
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

void TakeRows(StreamView stream, std::byte* rows, const std::int64_t* index, std::int64_t num_rows,
              std::size_t row_bytes, std::byte* taken) {
  MoveBytes<Move::kTake>(stream, rows, index, num_rows, row_bytes, taken);
}

void GatherSlices(StreamView stream, const Slices& slices) {
  std::uintptr_t all = 0;
  std::size_t longest = 0;
  for (int i = 0; i < slices.count; ++i) {
    all |= reinterpret_cast<std::uintptr_t>(slices.from[i]) |
           reinterpret_cast<std::uintptr_t>(slices.to[i]) | slices.num_bytes[i];
    longest = std::max(longest, slices.num_bytes[i]);
  }
  if (longest == 0) return;
  InWidestWords(all, [&](auto word) {
    const auto words = static_cast<std::int64_t>(longest / sizeof word);
    const dim3 blocks(BlocksFor(words), static_cast<unsigned>(slices.count));
    Launch(CopySlices<decltype(word)>, blocks, kThreads, stream, slices);
  });
}

void RowChecksums(StreamView stream, const std::byte* rows, std::int64_t num_rows,
                  std::size_t row_bytes, std::uint64_t* sums) {
  if (num_rows == 0) return;
  Launch(ChecksumRows, BlocksFor(num_rows * 32), kThreads, stream,
         reinterpret_cast<const std::uint32_t*>(rows), num_rows,
         static_cast<std::int64_t>(row_bytes / sizeof(std::uint32_t)), sums);
}

}  // namespace troupe::gpu
