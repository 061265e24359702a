#include "transport/gpu/copy_check.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <utility>

#include "gpu/kernels/device.hpp"
#include "gpu/stream.hpp"

namespace troupe {
namespace {

constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kSlot = sizeof(std::uint64_t);

bool IsOdd(const ComparedRows& rows) { return rows.row_bytes < kWord; }

std::size_t Offset(std::int64_t row, std::size_t row_bytes) {
  return static_cast<std::size_t>(row) * row_bytes;
}

/// The first `num_bytes` bytes as a number.
std::uint64_t NumberOf(const std::byte* bytes, std::size_t num_bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes, num_bytes);
  return number;
}

std::uint64_t SumOf(const std::byte* row, std::size_t row_bytes) {
  std::uint64_t sum = 0;
  RowChecksums(row, 1, row_bytes, &sum);
  return sum;
}

std::string Hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

bool operator==(const ComparedRows& a, const ComparedRows& b) {
  return std::tie(a.begin, a.num_rows, a.row_bytes) == std::tie(b.begin, b.num_rows, b.row_bytes);
}

std::vector<ComparedRows> CutRows(std::uintptr_t address, std::size_t num_bytes) {
  std::vector<ComparedRows> cut;
  std::size_t begin = 0;
  const auto take = [&](std::size_t count, std::size_t row_bytes) {
    if (count == 0 || row_bytes == 0) return;
    cut.push_back({begin, static_cast<std::int64_t>(count), row_bytes});
    begin += count * row_bytes;
  };
  take(1, std::min(num_bytes, (kWord - address % kWord) % kWord));
  take((num_bytes - begin) / kRowBytes, kRowBytes);
  take(1, (num_bytes - begin) / kWord * kWord);
  take(1, num_bytes - begin);
  return cut;
}

void CopyCheck::Add(const std::byte* on_device, const std::byte* on_host, std::size_t num_bytes,
                    std::size_t begin) {
  for (const ComparedRows& rows : CutRows(reinterpret_cast<std::uintptr_t>(on_device), num_bytes)) {
    runs_.push_back({on_device + rows.begin, on_host + rows.begin, begin + rows.begin, rows});
    num_rows_ += rows.num_rows;
  }
}

void CopyCheck::Queue(const gpu::Stream& stream, std::uint64_t* spare,
                      const std::function<Buffer(std::size_t num_bytes)>& take) {
  if (runs_.empty()) return;
  fetched_ = take(Offset(num_rows_, kSlot));
  std::byte* slot = fetched_.data();
  std::int64_t summed = 0;
  const auto fetch_sums = [&] {
    gpu::Copy(stream, slot, spare, Offset(summed, kSlot), gpu::Way::kToHost);
    slot += Offset(std::exchange(summed, 0), kSlot);
  };
  for (const auto& [on_device, on_host, begin, rows] : runs_) {
    if (IsOdd(rows)) {
      fetch_sums();
      gpu::Copy(stream, slot, on_device, rows.row_bytes, gpu::Way::kToHost);
      slot += kSlot;
      continue;
    }
    for (std::int64_t row = 0; row < rows.num_rows;) {
      const std::int64_t count = std::min(rows.num_rows - row, kSpareSums - summed);
      gpu::RowChecksums(stream, on_device + Offset(row, rows.row_bytes), count, rows.row_bytes,
                        spare + summed);
      row += count;
      summed += count;
      if (summed == kSpareSums) fetch_sums();
    }
  }
  fetch_sums();
}

std::string CopyCheck::Compare(gpu::Way way, int device) const {
  const std::string device_name = "device " + std::to_string(device);
  const bool to_host = way == gpu::Way::kToHost;
  const std::byte* slot = fetched_.data();
  for (const Run& run : runs_) {
    const std::size_t size = run.rows.row_bytes;
    const bool odd = IsOdd(run.rows);
    for (std::int64_t row = 0; row < run.rows.num_rows; ++row, slot += kSlot) {
      const std::byte* const mine = run.on_host + Offset(row, size);
      const std::uint64_t of_host = odd ? NumberOf(mine, size) : SumOf(mine, size);
      const std::uint64_t of_device = NumberOf(slot, odd ? size : kSlot);
      if (of_host == of_device) continue;
      const std::size_t begin = run.begin + Offset(row, size);
      return "bytes [" + std::to_string(begin) + ", " + std::to_string(begin + size) +
             ") changed on the way from " +
             (to_host ? device_name + " to the host" : "the host to " + device_name) +
             ": expected " + (odd ? "content " : "checksum ") + Hex(to_host ? of_device : of_host) +
             ", got " + Hex(to_host ? of_host : of_device);
    }
  }
  return {};
}

}  // namespace troupe
