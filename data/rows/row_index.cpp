#include "data/rows/row_index.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "files/sha256.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kHeaderSize = 256;
constexpr std::array<char, 8> kMagic = {'t', 'r', 'o', 'u', 'p', 'e', 'i', '4'};

/// As it lies in the file.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::int64_t num_encoders = 0;
  RowSums sums;
  std::array<char, 64> digest = {};
  std::array<char, 64> facts_digest = {};
};
static_assert(sizeof(Header) <= kHeaderSize);

constexpr std::array<char, 8> kPartMagic = {'t', 'r', 'o', 'u', 'p', 'e', 'p', '3'};

/// The same of a partial index.
struct PartHeader {
  std::array<char, 8> magic = kPartMagic;
  std::int64_t num_encoders = 0;
  IndexPart part;
  std::uint32_t places_sum = 0;  ///< as of RowIndex::RecordSums
  std::uint32_t facts_sum = 0;
};
static_assert(sizeof(PartHeader) <= kHeaderSize);

/// As it lies in the file, before the lengths.
struct Record {
  std::int64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t line = 0;
  std::uint32_t sum = 0;
  std::uint32_t tokens = 0;
  std::uint32_t labels = 0;
  std::uint32_t flags = 0;  ///< with the record's checksum in the upper bits
};
static_assert(sizeof(Record) == 32);

constexpr std::uint32_t kUsable = 1;
constexpr std::uint32_t kCut = 2;
constexpr std::uint32_t kFlags = 255;
constexpr std::size_t kBuffer = std::size_t{1} << 18;

/// Clamps. Only refused rows have a larger size.
std::uint32_t Narrow(std::int64_t value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, kMost));
}

std::uint32_t Crc(std::uint32_t sum, std::span<const std::byte> bytes) {
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  return static_cast<std::uint32_t>(crc32_z(sum, data, bytes.size()));
}

/// Returns the flags of the record with its checksum, as they belong in the file.
std::uint32_t SealedFlags(std::int64_t row, std::span<const std::byte> bytes) {
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  record.flags &= kFlags;
  std::uint32_t sum = Crc(0, std::as_bytes(std::span(&row, 1)));
  sum = Crc(sum, std::as_bytes(std::span(&record, 1)));
  sum = Crc(sum, bytes.subspan(sizeof record));
  return record.flags | (sum & ~kFlags);
}

void Seal(std::int64_t row, std::span<std::byte> bytes) {
  const std::uint32_t flags = SealedFlags(row, bytes);
  std::memcpy(bytes.data() + offsetof(Record, flags), &flags, sizeof flags);
}

[[noreturn]] void Fail(const std::string& what) {
  throw IndexError("index: " + what + ": " + std::strerror(errno));
}

}  // namespace

RowSums& RowSums::operator+=(const RowSums& other) {
  rows += other.rows;
  bad += other.bad;
  cut += other.cut;
  without_files += other.without_files;
  with_labels += other.with_labels;
  replaceable += other.replaceable;
  replaceable_with_labels += other.replaceable_with_labels;
  tokens += other.tokens;
  most_tokens = std::max(most_tokens, other.most_tokens);
  return *this;
}

RowIndex::RowIndex(std::size_t num_encoders)
    : RowIndex(memfd_create("troupe_rows", MFD_CLOEXEC), num_encoders) {
  in_memory_ = true;
}

RowIndex::RowIndex(int file, std::size_t num_encoders) : file_(file), num_encoders_(num_encoders) {
  if (file_ < 0) Fail("cannot be made");
  part_ = PartInFile();
  sums_.rows = num_written_ = part_.sums.rows;
}

IndexPart RowIndex::PartInFile() {
  struct stat status = {};
  if (fstat(file_, &status) != 0 || status.st_size < kHeaderSize) return {};
  Header whole;
  PartHeader header;
  try {
    Read(0, std::as_writable_bytes(std::span(&whole, 1)));
    Read(0, std::as_writable_bytes(std::span(&header, 1)));
  } catch (const IndexError&) {
    return {};
  }
  const bool is_whole = whole.magic == kMagic;  // its job was killed before it had a name
  if (is_whole) {
    header = {.num_encoders = whole.num_encoders,
              .part = {.sums = whole.sums, .measured = whole.sums.rows, .has_all_places = true}};
  }
  const IndexPart& part = header.part;
  const std::int64_t rows = part.sums.rows;
  const bool fits = header.magic == kPartMagic &&
                    header.num_encoders == static_cast<std::int64_t>(num_encoders_) && rows >= 0 &&
                    rows <= status.st_size && status.st_size >= OffsetOf(rows) &&
                    part.measured >= 0 && part.measured <= rows;
  if (!fits) return {};
  if (is_whole) {
    const bool is_sound =
        std::ranges::equal(DigestOfRecords(rows, record_size()), whole.facts_digest);
    return is_sound ? part : IndexPart();
  }
  SumRecords(rows, part.measured);
  if (record_sums_.places == header.places_sum && record_sums_.facts == header.facts_sum)
    return part;
  record_sums_ = {};
  return {};
}

void RowIndex::SumRecords(std::int64_t rows, std::int64_t measured) {
  if (rows < record_sums_.rows || measured < record_sums_.measured) record_sums_ = {};
  ForRecords(record_sums_.rows, rows, [&](std::span<const std::byte> record) {
    record_sums_.places = Crc(record_sums_.places, record.first(offsetof(Record, sum)));
  });
  ForRecords(record_sums_.measured, measured, [&](std::span<const std::byte> record) {
    record_sums_.facts = Crc(record_sums_.facts, record);
  });
  record_sums_.rows = rows;
  record_sums_.measured = measured;
}

RowIndex::RowIndex(const std::string& path, std::size_t num_encoders)
    : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), num_encoders_(num_encoders) {
  if (file_ < 0) Fail("cannot open");
  Header header;
  struct stat status = {};
  try {
    if (fstat(file_, &status) != 0) Fail("cannot be read");
    if (!S_ISREG(status.st_mode)) throw IndexError("index: not a regular file");
    Read(0, std::as_writable_bytes(std::span(&header, 1)));
    const std::int64_t rows = header.sums.rows;
    if (header.magic != kMagic || header.num_encoders != static_cast<std::int64_t>(num_encoders) ||
        rows < 0 || rows > status.st_size || status.st_size != OffsetOf(rows)) {
      throw IndexError("index: not a whole one");
    }
  } catch (...) {
    close(file_);
    throw;
  }
  sums_ = header.sums;
  num_written_ = sums_.rows;
  digest_.assign(header.digest.data(), header.digest.size());
  facts_digest_.assign(header.facts_digest.data(), header.facts_digest.size());
}

RowIndex::~RowIndex() { close(file_); }

std::int64_t RowIndex::OffsetOf(std::int64_t row) const {
  return kHeaderSize + row * static_cast<std::int64_t>(record_size());
}

void RowIndex::Append(const RowSpan& span) {
  const Record record{.offset = span.offset, .size = Narrow(span.size), .line = Narrow(span.line)};
  const std::size_t at = appended_.size();
  appended_.resize(at + record_size());
  std::memcpy(appended_.data() + at, &record, sizeof record);
  Seal(sums_.rows, std::span(appended_).subspan(at));
  ++sums_.rows;
  if (appended_.size() >= kBuffer) Flush();
}

void RowIndex::Flush() {
  Write(OffsetOf(num_written_), appended_);
  num_written_ = sums_.rows;
  appended_.clear();
}

void RowIndex::Set(std::int64_t row, const RowFacts& facts) {
  std::vector<std::byte> bytes(record_size());
  const Record record{facts.span.offset,
                      Narrow(facts.span.size),
                      Narrow(facts.span.line),
                      facts.sum,
                      Narrow(facts.tokens),
                      Narrow(facts.labels),
                      (facts.usable ? kUsable : 0) | (facts.cut ? kCut : 0)};
  std::memcpy(bytes.data(), &record, sizeof record);
  for (std::size_t i = 0; i < facts.lengths.size() && i < num_encoders_; ++i) {
    const std::uint32_t length = Narrow(facts.lengths[i]);
    std::memcpy(bytes.data() + sizeof record + i * sizeof length, &length, sizeof length);
  }
  Seal(row, bytes);
  Write(OffsetOf(row), bytes);
}

RowFacts RowIndex::Get(std::int64_t row) const {
  std::array<std::byte, 512> small;
  std::vector<std::byte> large;
  std::span<std::byte> bytes = small;
  if (record_size() > small.size()) bytes = large = std::vector<std::byte>(record_size());
  bytes = bytes.first(record_size());
  Read(OffsetOf(row), bytes);
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  if (record.flags != SealedFlags(row, bytes)) {
    throw IndexError("index: its record is damaged");
  }
  RowFacts facts{.span = {record.offset, record.size, record.line},
                 .sum = record.sum,
                 .tokens = record.tokens,
                 .labels = record.labels,
                 .usable = (record.flags & kUsable) != 0,
                 .cut = (record.flags & kCut) != 0,
                 .lengths = {}};
  for (std::size_t i = 0; i < num_encoders_; ++i) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data() + sizeof record + i * sizeof length, sizeof length);
    facts.lengths.push_back(length);
  }
  return facts;
}

RowSpan RowIndex::SpanOf(std::int64_t row) const {
  Record record;
  Read(OffsetOf(row), std::as_writable_bytes(std::span(&record, 1)));
  return {record.offset, record.size, record.line};
}

void RowIndex::WriteHeader(std::span<const std::byte> header) const {
  std::array<std::byte, kHeaderSize> bytes = {};
  std::ranges::copy(header, bytes.begin());
  Write(0, bytes);
}

void RowIndex::Keep(const IndexPart& part) {
  if (in_memory_) return;
  Flush();
  SumRecords(part.sums.rows, part.measured);
  const PartHeader header{.num_encoders = static_cast<std::int64_t>(num_encoders_),
                          .part = part,
                          .places_sum = record_sums_.places,
                          .facts_sum = record_sums_.facts};
  // The header must not reach the disk before the rows that it counts.
  if (fdatasync(file_) != 0) Fail("cannot be written");
  WriteHeader(std::as_bytes(std::span(&header, 1)));
}

void RowIndex::Clear() {
  part_ = {};
  record_sums_ = {};
  sums_ = {};
  num_written_ = 0;
  appended_.clear();
  if (ftruncate(file_, 0) != 0) Fail("cannot be written");
}

void RowIndex::Finish(const RowSums& sums) {
  Flush();
  const std::int64_t rows = sums_.rows;
  sums_ = sums;
  sums_.rows = rows;
  digest_ = DigestOfRecords(rows, offsetof(Record, tokens));
  facts_digest_ = DigestOfRecords(rows, record_size());
  Header header{.num_encoders = static_cast<std::int64_t>(num_encoders_), .sums = sums_};
  std::ranges::copy(digest_, header.digest.begin());
  std::ranges::copy(facts_digest_, header.facts_digest.begin());
  // A partial index may have had more rows.
  if (ftruncate(file_, OffsetOf(rows)) != 0 || fdatasync(file_) != 0) Fail("cannot be written");
  WriteHeader(std::as_bytes(std::span(&header, 1)));
}

std::string RowIndex::DigestOfRecords(std::int64_t rows, std::size_t of_each) const {
  Sha256 digest;
  std::vector<std::byte> bytes(record_size());
  ForRecords(0, rows, [&](std::span<const std::byte> record) {
    std::ranges::copy(record, bytes.begin());
    std::fill_n(bytes.begin() + offsetof(Record, flags) + 1, 3, std::byte{});
    digest.Update(std::span(bytes).first(of_each));
  });
  return digest.Hex();
}

void RowIndex::ForRecords(std::int64_t begin, std::int64_t end,
                          const std::function<void(std::span<const std::byte>)>& use) const {
  const std::size_t at_once = kBuffer / record_size();
  std::vector<std::byte> bytes(at_once * record_size());
  while (begin < end) {
    const std::size_t count = std::min(at_once, static_cast<std::size_t>(end - begin));
    const std::span<std::byte> records = std::span(bytes).first(count * record_size());
    Read(OffsetOf(begin), records);
    for (std::size_t i = 0; i < count; ++i) use(records.subspan(i * record_size(), record_size()));
    begin += static_cast<std::int64_t>(count);
  }
}

void RowIndex::Write(std::int64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) Fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += put;
  }
}

void RowIndex::Read(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(file_, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Fail("cannot be read");
    if (got == 0) throw IndexError("index: it is cut short");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
}

}  // namespace troupe
