#include "gpu/kernels/rows.hpp"

#include <cstring>

namespace troupe {
namespace {

std::size_t Offset(std::int64_t row, std::size_t row_bytes) {
  return static_cast<std::size_t>(row) * row_bytes;
}

}  // namespace

void GatherRows(const std::byte* source, const std::int64_t* index, std::int64_t num_rows,
                std::size_t row_bytes, std::byte* destination) {
  for (std::int64_t i = 0; i < num_rows; ++i) {
    std::memcpy(destination + Offset(i, row_bytes), source + Offset(index[i], row_bytes),
                row_bytes);
  }
}

void ScatterRows(const std::byte* source, const std::int64_t* index, std::int64_t num_rows,
                 std::size_t row_bytes, std::byte* destination) {
  for (std::int64_t i = 0; i < num_rows; ++i) {
    std::memcpy(destination + Offset(index[i], row_bytes), source + Offset(i, row_bytes),
                row_bytes);
  }
}

void TakeRows(std::byte* rows, const std::int64_t* index, std::int64_t num_rows,
              std::size_t row_bytes, std::byte* taken) {
  for (std::int64_t i = 0; i < num_rows; ++i) {
    std::byte* row = rows + Offset(index[i], row_bytes);
    std::memcpy(taken + Offset(i, row_bytes), row, row_bytes);
    std::memset(row, 0, row_bytes);
  }
}

void GatherSlices(const gpu::Slices& slices) {
  for (int i = 0; i < slices.count; ++i) {
    std::memcpy(slices.to[i], slices.from[i], slices.num_bytes[i]);
  }
}

void RowChecksums(const std::byte* rows, std::int64_t num_rows, std::size_t row_bytes,
                  std::uint64_t* sums) {
  for (std::int64_t i = 0; i < num_rows; ++i) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < row_bytes; at += sizeof(std::uint32_t)) {
      std::uint32_t word = 0;
      std::memcpy(&word, rows + Offset(i, row_bytes) + at, sizeof word);
      sum += ChecksumOf(word, at / sizeof word);
    }
    sums[i] = sum;
  }
}

}  // namespace troupe
