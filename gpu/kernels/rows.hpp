// Rows moved by a table of indices, as the rows of images take their places in a text, and slices
// of rows laid together, as what comes over a boundary is. Elements are bytes to it, so bf16 and
// float32 are one. The plain loops; gpu/kernels/device.hpp has the same on a stream.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

/// destination[i] = source[index[i]], rows of `row_bytes`, i < num_rows. Source and destination do
/// not overlap.
void GatherRows(const std::byte* source, const std::int64_t* index, std::int64_t num_rows,
                std::size_t row_bytes, std::byte* destination);

/// destination[index[i]] = source[i]. No index stands twice.
void ScatterRows(const std::byte* source, const std::int64_t* index, std::int64_t num_rows,
                 std::size_t row_bytes, std::byte* destination);

/// The inverse of inserting rows: taken[i] = rows[index[i]], which is zeros from then on. So the
/// gradient of an inserted row goes to where it came from, and to nothing else.
void TakeRows(std::byte* rows, const std::int64_t* index, std::int64_t num_rows,
              std::size_t row_bytes, std::byte* taken);

namespace gpu {

/// Slices of rows and where each goes, on one device. Travels to it by value.
struct Slices {
  static constexpr int kMost = 128;

  const std::byte* from[kMost] = {};
  std::byte* to[kMost] = {};
  std::size_t num_bytes[kMost] = {};
  int count = 0;

  /// For one of fewer than kMost.
  void Add(const std::byte* source, std::size_t bytes, std::byte* destination) {
    from[count] = source;
    to[count] = destination;
    num_bytes[count++] = bytes;
  }
};

}  // namespace gpu

/// Every slice is copied; none overlaps another's destination.
void GatherSlices(const gpu::Slices& slices);

/// A number for the content of each row, the same wherever the row lies: sums[i] of row i. Rows are
/// whole numbers of 4-byte words. Not against forgery: a row that changed, or two that were
/// exchanged, have other sums but for one in 2^64.
void RowChecksums(const std::byte* rows, std::int64_t num_rows, std::size_t row_bytes,
                  std::uint64_t* sums);

/// What a word adds to its row's sum; sums wrap around, so the order in which they are made is of
/// no consequence. The finisher of MurmurHash3 over word and place.
constexpr std::uint64_t ChecksumOf(std::uint32_t word, std::uint64_t place) {
  std::uint64_t x = (place + 1) * 0x9e3779b97f4a7c15ULL ^ word;
  x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33U);
}

}  // namespace troupe
