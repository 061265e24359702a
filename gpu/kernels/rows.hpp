// Moves rows by an index table, for example the rows of images into a text, and gathers slices of
// rows, for example tensors received over a boundary. Elements are plain bytes, so bf16 and float32
// are alike. The plain loops; the device versions are in gpu/kernels/device.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

/// destination[i] = source[index[i]], rows of `row_bytes`, i < num_rows. Source and destination
/// must not overlap.
void GatherRows(const std::byte* source, const std::int64_t* index, std::int64_t num_rows,
                std::size_t row_bytes, std::byte* destination);

/// destination[index[i]] = source[i]. No index may occur twice.
void ScatterRows(const std::byte* source, const std::int64_t* index, std::int64_t num_rows,
                 std::size_t row_bytes, std::byte* destination);

/// The inverse of inserting rows: taken[i] = rows[index[i]], which is then zeroed. So the gradient
/// of an inserted row reaches its origin and nothing else. No index may occur twice.
void TakeRows(std::byte* rows, const std::int64_t* index, std::int64_t num_rows,
              std::size_t row_bytes, std::byte* taken);

namespace gpu {

/// Slices of rows and their destinations, on one device. Passed to the kernel by value.
struct Slices {
  static constexpr int kMost = 128;

  const std::byte* from[kMost] = {};
  std::byte* to[kMost] = {};
  std::size_t num_bytes[kMost] = {};
  int count = 0;

  /// Requires count < kMost.
  void Add(const std::byte* source, std::size_t bytes, std::byte* destination) {
    from[count] = source;
    to[count] = destination;
    num_bytes[count++] = bytes;
  }
};

}  // namespace gpu

/// Copies every slice. No slice may overlap another's destination.
void GatherSlices(const gpu::Slices& slices);

/// A checksum of each row's content, independent of the row's position: sums[i] of row i. Rows are
/// whole numbers of 4-byte words. No protection against forgery; an accidental change or exchange
/// of rows goes unnoticed with a probability of 2^-64.
void RowChecksums(const std::byte* rows, std::int64_t num_rows, std::size_t row_bytes,
                  std::uint64_t* sums);

/// A word's contribution to its row's sum. Sums wrap around, so their order does not matter. The
/// finisher of MurmurHash3 over word and position.
constexpr std::uint64_t ChecksumOf(std::uint32_t word, std::uint64_t place) {
  std::uint64_t x = (place + 1) * 0x9e3779b97f4a7c15ULL ^ word;
  x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33U);
}

}  // namespace troupe
