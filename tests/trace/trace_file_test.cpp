#include "trace/trace_file.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

namespace troupe {
namespace {

const std::vector<std::string> kNames = {"vision.s0", "language.s0", "language.s1"};

/// A path of its own for every test, removed at its end.
class TemporaryFile {
 public:
  TemporaryFile() {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("troupe_trace_" + std::to_string(getpid()) + "_" + std::to_string(count++)))
                .string();
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  void Replace(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  std::string path_;
};

std::vector<PassRecord> Records(int count) {
  std::vector<PassRecord> records;
  for (int i = 0; i < count; ++i) {
    PassRecord record;
    record.unit = 10 + i;
    record.round = 20 + i;
    record.begin_ns = 1'000'000'000'000 + i;
    record.end_ns = record.begin_ns + 100 + i;
    record.stage = i % 3;
    record.dp = 40 + i;
    record.rank = 50 + i;
    record.kind = static_cast<WorkKind>(1 + i % kNumWorkKinds);
    records.push_back(record);
  }
  return records;
}

void WriteTrace(const std::string& path, std::span<const PassRecord> records) {
  TraceWriter writer(path, kNames);
  writer.Append(records);
  writer.Close();
}

TEST_CASE("a trace reads back as it was written", "[trace]") {
  const TemporaryFile file;
  const std::vector<PassRecord> records = Records(7);
  {
    TraceWriter writer(file.path(), kNames);
    writer.Append(std::span(records).first(3));
    writer.Append({});
    writer.Append(std::span(records).subspan(3));
    writer.Close();
    writer.Close();
    CHECK_THROWS_WITH(writer.Append(records), EndsWith("trace is closed"));
  }
  const Trace trace = ReadTrace(file.path());
  CHECK(trace.stage_names == kNames);
  CHECK(trace.records == records);
  CHECK(trace.torn_bytes == 0);
}

TEST_CASE("a trace without stages or records is a trace", "[trace]") {
  const TemporaryFile file;
  TraceWriter(file.path(), {}).Close();
  CHECK(ReadTrace(file.path()).stage_names.empty());
  CHECK(ReadTrace(file.path()).records.empty());
}

TEST_CASE("a trace file is laid out as its header says", "[trace]") {
  const TemporaryFile file;
  WriteTrace(file.path(), Records(1));
  const std::string bytes = file.Bytes();
  const auto number = [&bytes](std::size_t offset) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  REQUIRE(bytes.size() == 128 + 64);
  CHECK(bytes.substr(0, 8) == "TRPTRACE");
  CHECK(number(8) == 1);
  CHECK(number(12) == 64);
  CHECK(number(16) == 3);
  CHECK(number(20) == 128);
  CHECK(number(24) == 9);
  CHECK(bytes.substr(28, 9) == "vision.s0");
  CHECK(number(128) == 10);
  CHECK(number(128 + 32) == 0);
  CHECK(number(128 + 36) == 40);
  CHECK(number(128 + 40) == 50);
  CHECK(bytes[128 + 44] == 1);
}

TEST_CASE("a tail that a crash cut short loses only itself", "[trace]") {
  const TemporaryFile file;
  const std::vector<PassRecord> records = Records(4);
  WriteTrace(file.path(), records);
  const std::string bytes = file.Bytes();
  for (std::size_t lost = 1; lost < 3 * sizeof(PassRecord); ++lost) {
    file.Replace(bytes.substr(0, bytes.size() - lost));
    const Trace trace = ReadTrace(file.path());
    const std::size_t kept = (4 * sizeof(PassRecord) - lost) / sizeof(PassRecord);
    REQUIRE(trace.records ==
            std::vector<PassRecord>(records.begin(),
                                    records.begin() + static_cast<std::ptrdiff_t>(kept)));
    REQUIRE(trace.torn_bytes == (4 * sizeof(PassRecord) - lost) % sizeof(PassRecord));
  }
}

TEST_CASE("a tail that a crash left as zeros loses only itself", "[trace]") {
  const TemporaryFile file;
  WriteTrace(file.path(), Records(4));
  file.Replace(file.Bytes() + std::string(2 * sizeof(PassRecord) + 5, '\0'));
  const Trace trace = ReadTrace(file.path());
  CHECK(trace.records == Records(4));
  CHECK(trace.torn_bytes == 2 * sizeof(PassRecord) + 5);
}

TEST_CASE("a header cut anywhere is refused, not read", "[trace]") {
  const TemporaryFile file;
  WriteTrace(file.path(), {});
  const std::string bytes = file.Bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    file.Replace(bytes.substr(0, size));
    REQUIRE_THROWS_WITH(ReadTrace(file.path()),
                        Contains(size < 8 ? "not a trace file" : "trace header is cut short"));
  }
}

TEST_CASE("wrong headers and records are refused with what is wrong", "[trace]") {
  const TemporaryFile file;
  WriteTrace(file.path(), Records(2));
  const std::string bytes = file.Bytes();
  const auto check = [&](std::size_t offset, char value, const std::string& text) {
    std::string wrong = bytes;
    wrong[offset] = value;
    file.Replace(wrong);
    CHECK_THROWS_WITH(ReadTrace(file.path()), EndsWith(text));
  };
  check(0, 'X', "not a trace file");
  check(8, 2, "trace version is 2, expected 1");
  check(12, 65, "record size is 65, expected 64");
  check(19, 0x7f, "trace header is cut short");
  check(20, 32, "records begin at byte 32, expected them after the names, at 67");
  check(23, 0x7f, "trace header is cut short");
  check(27, 0x7f, "trace header is cut short");
  check(128 + 64 + 44, 7, "record 1 has kind 7, expected 1 to 6");
  check(128 + 44, 0, "record 0 has kind 0, expected 1 to 6");
  check(128 + 32, 3, "record 0 has stage 3, but there are 3 stages");
  check(128 + 35, -1, "record 0 has stage -16777216, but there are 3 stages");
}

TEST_CASE("files that cannot be read or written are named with the reason", "[trace]") {
  CHECK_THROWS_WITH(ReadTrace("/nowhere/trace"),
                    "/nowhere/trace: cannot open: No such file or directory");
  CHECK_THROWS_WITH(ReadTrace("/"), Contains("/: cannot read"));
  CHECK_THROWS_WITH(TraceWriter("/nowhere/trace", {}),
                    "/nowhere/trace: cannot create: No such file or directory");
  CHECK_THROWS_WITH(TraceWriter("/dev/full", {}),
                    "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace troupe
