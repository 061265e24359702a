#include "trace/trace_file.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

static_assert(std::endian::native == std::endian::little, "trace files are written as they lie");

constexpr std::string_view kMagic = "TRPTRACE";
constexpr std::size_t kFixedBytes = 24;
constexpr std::size_t kChunkBytes = 1 << 20;  ///< per read: large enough that calls cost nothing

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

void Append(std::string& bytes, std::size_t number) {
  const auto word = static_cast<std::uint32_t>(number);
  bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
}

/// The header up to the first record.
std::string Header(const std::vector<std::string>& stage_names) {
  std::string names;
  for (const std::string& name : stage_names) {
    Append(names, name.size());
    names += name;
  }
  const std::size_t used = kFixedBytes + names.size();
  const std::size_t first_record =
      (used + sizeof(PassRecord) - 1) / sizeof(PassRecord) * sizeof(PassRecord);
  std::string header(kMagic);
  Append(header, kTraceVersion);
  Append(header, sizeof(PassRecord));
  Append(header, stage_names.size());
  Append(header, first_record);
  header += names;
  header.resize(first_record, '\0');
  return header;
}

std::string ReadAll(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) Fail(path, std::string("cannot open: ") + std::strerror(errno));
  std::string bytes;
  std::vector<char> chunk(kChunkBytes);
  while (!std::feof(file.get())) {
    const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file.get());
    if (std::ferror(file.get())) Fail(path, std::string("cannot read: ") + std::strerror(errno));
    bytes.append(chunk.data(), count);
  }
  return bytes;
}

/// Takes numbers and names off the front of a header; every step checks what is left.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::string_view rest) : path_(path), rest_(rest) {}

  std::string_view Take(std::size_t count) {
    if (count > rest_.size()) Fail(path_, "trace header is cut short");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::uint32_t Number() {
    std::uint32_t number = 0;
    std::memcpy(&number, Take(sizeof(number)).data(), sizeof(number));
    return number;
  }

  void Expect(const std::string& what, std::uint32_t expected) {
    const std::uint32_t number = Number();
    if (number == expected) return;
    Fail(path_, what + " is " + std::to_string(number) + ", expected " + std::to_string(expected));
  }

  std::size_t size() const { return rest_.size(); }

 private:
  const std::string& path_;
  std::string_view rest_;
};

bool IsZero(const char* record) {
  return std::all_of(record, record + sizeof(PassRecord), [](char byte) { return byte == 0; });
}

void CheckRecord(const std::string& path, const Trace& trace, const PassRecord& record) {
  const auto kind = static_cast<unsigned>(record.kind);
  const std::string name = "record " + std::to_string(trace.records.size());
  if (kind < 1 || kind > kNumWorkKinds) {
    Fail(path, name + " has kind " + std::to_string(kind) + ", expected 1 to " +
                   std::to_string(kNumWorkKinds));
  }
  if (record.stage < 0 || static_cast<std::size_t>(record.stage) >= trace.stage_names.size()) {
    Fail(path, name + " has stage " + std::to_string(record.stage) + ", but there are " +
                   std::to_string(trace.stage_names.size()) + " stages");
  }
}

void ReadRecords(const std::string& path, std::string_view bytes, Trace& trace) {
  std::size_t whole = bytes.size() / sizeof(PassRecord);
  while (whole > 0 && IsZero(bytes.data() + (whole - 1) * sizeof(PassRecord))) --whole;
  trace.torn_bytes = bytes.size() - whole * sizeof(PassRecord);
  trace.records.reserve(whole);
  for (std::size_t i = 0; i < whole; ++i) {
    PassRecord record;
    std::memcpy(&record, bytes.data() + i * sizeof(PassRecord), sizeof(record));
    CheckRecord(path, trace, record);
    trace.records.push_back(record);
  }
}

}  // namespace

TraceWriter::TraceWriter(std::string path, const std::vector<std::string>& stage_names)
    : path_(std::move(path)) {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) Fail(path_, std::string("cannot create: ") + std::strerror(errno));
  const std::string header = Header(stage_names);
  try {
    Write(std::as_bytes(std::span(header)));
  } catch (...) {
    close(file_);
    throw;
  }
}

TraceWriter::~TraceWriter() {
  if (file_ >= 0) close(file_);
}

void TraceWriter::Append(std::span<const PassRecord> records) { Write(std::as_bytes(records)); }

void TraceWriter::Write(std::span<const std::byte> bytes) {
  if (file_ < 0) Fail(path_, "trace is closed");
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = pwrite(file_, bytes.data() + written, bytes.size() - written,
                                 end_ + static_cast<std::int64_t>(written));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) Fail(path_, std::string("cannot write: ") + std::strerror(errno));
    written += static_cast<std::size_t>(count);
  }
  end_ += static_cast<std::int64_t>(written);
}

void TraceWriter::Close() {
  if (file_ < 0) return;
  const int file = std::exchange(file_, -1);
  if (close(file) != 0) Fail(path_, std::string("cannot close: ") + std::strerror(errno));
}

Trace ReadTrace(const std::string& path) {
  const std::string bytes = ReadAll(path);
  HeaderReader header(path, bytes);
  if (bytes.size() < kMagic.size() || header.Take(kMagic.size()) != kMagic) {
    Fail(path, "not a trace file");
  }
  header.Expect("trace version", kTraceVersion);
  header.Expect("record size", sizeof(PassRecord));
  const std::uint32_t num_names = header.Number();
  const std::size_t first_record = header.Number();
  Trace trace;
  for (std::uint32_t i = 0; i < num_names; ++i) {
    trace.stage_names.emplace_back(header.Take(header.Number()));
  }
  const std::size_t names_end = bytes.size() - header.size();
  if (first_record < names_end) {
    Fail(path, "records begin at byte " + std::to_string(first_record) +
                   ", expected them after the names, at " + std::to_string(names_end));
  }
  header.Take(first_record - names_end);
  ReadRecords(path, std::string_view(bytes).substr(first_record), trace);
  return trace;
}

}  // namespace troupe
