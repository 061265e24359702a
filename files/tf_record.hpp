// TensorFlow's file of records, in which TensorBoard reads events: each record is its length, a
// checksum of that, its bytes, and a checksum of those.
//   source   tensorflow/core/lib/io/record_writer.h
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Returns CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`.
std::uint32_t Crc32c(std::string_view bytes);

/// Returns the checksum that a record holds: CRC-32C rotated and offset, so that the checksum of
/// bytes that include checksums is no special value.
std::uint32_t MaskedCrc32c(std::string_view bytes);

/// Returns `bytes` as a record: u64 length, u32 checksum of the length, bytes, u32 checksum of the
/// bytes, all little-endian.
std::string TfRecord(std::string_view bytes);

}  // namespace troupe
