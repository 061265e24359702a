// Whether a copy between a device and pinned memory brought every byte: both sides are summed where
// they lie, and the host compares.
//
//   whole words   are cut into rows of kRowBytes, the last one shorter; the device sums each to 8
//                 bytes (gpu::RowChecksums), and the sums come to the host
//   odd bytes     at the ends, at most 3 each, which are no words to a device: come to the host
//                 once more as they are
//
// All of it takes its turn in the stream of the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/copies.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// Rows of one size, one behind the other. Fewer bytes than a word are odd, and one row.
struct ComparedRows {
  std::size_t begin = 0;  ///< byte of what was cut
  std::int64_t num_rows = 0;
  std::size_t row_bytes = 0;
};
bool operator==(const ComparedRows& a, const ComparedRows& b);

/// A warp's 32 words, 32 times: enough for each to amortise its sum, and as much as an error names.
constexpr std::size_t kRowBytes = 4096;

/// Cuts `num_bytes` at `address` of a device: all of them, in order, none twice; rows that are
/// summed begin at a multiple of 4 and are whole words.
std::vector<ComparedRows> CutRows(std::uintptr_t address, std::size_t num_bytes);

/// Of one copy on one stream. Add all of it, queue, and when the stream has come that far compare.
class CopyCheck {
 public:
  /// Sums that are on the device at a time, of 16 MiB of bytes: memory that all checks on a stream
  /// share, since each uses it in its turn.
  static constexpr std::int64_t kSpareSums = 4096;
  static constexpr std::size_t kSpareBytes = kSpareSums * sizeof(std::uint64_t);

  /// `num_bytes` at `there` on the device and `here` in pinned memory are the same bytes, those
  /// from `begin` on of what errors speak of.
  void Add(const std::byte* there, const std::byte* here, std::size_t num_bytes, std::size_t begin);
  /// Queues what is to be summed and brought, on `stream`, with `spare` [kSpareBytes] of its
  /// device, which the thread talks to, and pinned memory of `take`. Throws gpu::CudaError.
  void Queue(const gpu::Stream& stream, std::uint64_t* spare,
             const std::function<Buffer(std::size_t num_bytes)>& take);
  /// Blocks for as long as the host takes for its sums. The first difference of a copy `way` with
  /// `device`, or "": "bytes [4096, 8192) changed on the way from device 0 to the host: expected
  /// checksum 1f0e2d3c4b5a6978, got 8796a5b4c3d2e1f0".
  std::string Compare(gpu::Way way, int device) const;

 private:
  struct Run {
    const std::byte* there;
    const std::byte* here;
    std::size_t begin;
    ComparedRows rows;
  };

  std::vector<Run> runs_;
  std::int64_t num_rows_ = 0;
  Buffer brought_;  // 8 bytes for each row, in order: its sum, or itself if it is odd
};

}  // namespace troupe
