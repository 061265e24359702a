// Verifies copies between a device and pinned memory: both sides are summed in place, and the host
// compares the sums.
//
//   whole words   are cut into rows of kRowBytes, the last one shorter. The device sums each row
//                 to 8 bytes (gpu::RowChecksums), and the sums are copied to the host
//   odd bytes     at the ends, at most 3 each, are not words. They are copied to the host a second
//                 time, unchanged
//
// All work is queued on the stream of the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/copies.hpp"
#include "transport/buffer.hpp"

namespace troupe {

/// Contiguous rows of one size. Fewer bytes than a word are odd bytes and form one row.
struct ComparedRows {
  std::size_t begin = 0;  ///< offset in the range that was cut
  std::int64_t num_rows = 0;
  std::size_t row_bytes = 0;
};
bool operator==(const ComparedRows& a, const ComparedRows& b);

/// 32 words for each of a warp's 32 lanes: enough to amortise the sum. Errors name this many bytes.
constexpr std::size_t kRowBytes = 4096;

/// Cuts `num_bytes` at `address` of a device into disjoint rows, in order, without gaps. Summed
/// rows begin at a multiple of 4 and are whole words.
std::vector<ComparedRows> CutRows(std::uintptr_t address, std::size_t num_bytes);

/// The check of one copy on one stream. Add all its ranges, Queue, and Compare after the stream has
/// completed that work.
class CopyCheck {
 public:
  /// Sums on the device at a time, for 16 MiB of bytes. All checks on a stream share this memory,
  /// since the stream orders them.
  static constexpr std::int64_t kSpareSums = 4096;
  static constexpr std::size_t kSpareBytes = kSpareSums * sizeof(std::uint64_t);

  /// States that `num_bytes` at `on_device` and at `on_host` (pinned) must be equal. `begin` is
  /// their offset in the range that errors refer to.
  void Add(const std::byte* on_device, const std::byte* on_host, std::size_t num_bytes,
           std::size_t begin);
  /// Queues the sums and their copies on `stream`, with `spare` [kSpareBytes] in memory of its
  /// device and pinned memory from `take`. The device must be current. Throws gpu::CudaError.
  void Queue(const gpu::Stream& stream, std::uint64_t* spare,
             const std::function<Buffer(std::size_t num_bytes)>& take);
  /// Blocks while the host computes its sums. Returns the first difference of a copy `way` with
  /// `device`, or "": "bytes [4096, 8192) changed on the way from device 0 to the host: expected
  /// checksum 1f0e2d3c4b5a6978, got 8796a5b4c3d2e1f0".
  std::string Compare(gpu::Way way, int device) const;

 private:
  struct Run {
    const std::byte* on_device;
    const std::byte* on_host;
    std::size_t begin;
    ComparedRows rows;
  };

  std::vector<Run> runs_;
  std::int64_t num_rows_ = 0;
  Buffer fetched_;  // 8 bytes per row, in order: its sum, or its content if it is odd
};

}  // namespace troupe
