// What work says about memory, in records and in files of before there was more than one number.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "trace/recorder.hpp"
#include "trace/work_usage.hpp"

namespace troupe {
namespace {

/// The bytes of a file of version 4, as trace/recorder.hpp says they lie.
class HandMadeFile {
 public:
  HandMadeFile() : bytes_(4096 + 4096 + 128) {
    std::memcpy(bytes_.data(), "TRPTRACE", 8);
    Put<std::uint32_t>(8, 4);
    Put<std::uint32_t>(12, 128);
    Put<std::uint64_t>(16, 1);  // records
    Put<std::uint64_t>(24, kRecord);
    Put<std::uint64_t>(32, 4096);
    const std::string names = "Q 0 n0\nP 0 n0\nS 0 0 a\nT 0 error\n";
    Put<std::uint64_t>(40, names.size());
    Put<std::uint32_t>(52, 1);  // processes
    Put<std::uint64_t>(56, 1);  // noted
    std::memcpy(bytes_.data() + 4096, names.data(), names.size());
    // The record of a backward of microbatch 7 on rank 3.
    Put<std::uint64_t>(kRecord, 1);
    Put<std::int64_t>(kRecord + 40, 1000);  // begin
    Put<std::int64_t>(kRecord + 48, 1500);
    Put<std::int64_t>(kRecord + 56, 7);
    Put<std::int32_t>(kRecord + 96, 2);  // round
    Put<std::int16_t>(kRecord + 106, 3);
    Put<std::uint8_t>(kRecord + 114, 2);      // work
    Put<std::uint8_t>(kRecord + 115, 2);      // backward
    Put<std::uint32_t>(kRecord + 124, 5000);  // KiB in use
  }

  template <class T>
  void Put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

  TraceWork Read() const {
    const std::string path = (std::filesystem::temp_directory_path() /
                              ("troupe_hand_made_trace_" + std::to_string(getpid())))
                                 .string();
    std::ofstream(path, std::ios::binary).write(bytes_.data(), std::ssize(bytes_));
    const TraceFile file = ReadTraceFile(path);
    std::filesystem::remove(path);
    const RunTrace trace = MergeTraces({file}, "run");
    REQUIRE(trace.work.size() == 1);
    return trace.work[0];
  }

  static constexpr std::size_t kRecord = 8192;

 private:
  std::vector<char> bytes_;
};

}  // namespace

TEST_CASE("a record of work keeps all that is said about memory, in KiB", "[trace]") {
  TraceRecord record;
  CHECK_FALSE(MemoryOf(record).known());
  CHECK_FALSE(MemoryOf(record).on_gpu());
  SetMemory(record, {3 * 1024 + 5, 7 * 1024, 11 * 1024 + 1023, 2});
  CHECK(MemoryOf(record) == WorkMemory{3 * 1024, 7 * 1024, 11 * 1024, 2});
  SetMemory(record, {0, 8 * 1024, 0, 0});
  CHECK(MemoryOf(record) == WorkMemory{0, 8 * 1024, 0, 0});
  CHECK(MemoryOf(record).known());
  CHECK(MemoryOf(record).on_gpu());
}

TEST_CASE("more memory than a record has room for is said to be as much as it has", "[trace]") {
  constexpr std::int64_t kMost = 0xFFFFFFFF * 1024LL;
  TraceRecord record;
  SetMemory(record, {kMost + 1024, std::int64_t{1} << 60, -5, WorkMemory::kOfProcess});
  CHECK(MemoryOf(record) == WorkMemory{kMost, kMost, 0, WorkMemory::kOfProcess});
}

TEST_CASE("what a record of work leaves zero of its memory is not known", "[trace]") {
  HandMadeFile file;
  const TraceWork work = file.Read();
  CHECK(work.pass.kind == WorkKind::kBackward);
  CHECK(work.pass.unit == 7);
  CHECK(work.pass.rank == 3);
  CHECK(work.memory == WorkMemory{5000 * 1024, 0, 0, WorkMemory::kOfProcess});
}

TEST_CASE("a record of work has its memory at these bytes", "[trace]") {
  HandMadeFile file;
  file.Put<std::uint32_t>(HandMadeFile::kRecord + 80, 6000);
  file.Put<std::uint32_t>(HandMadeFile::kRecord + 84, 7000);
  file.Put<std::uint8_t>(HandMadeFile::kRecord + 117, 2);
  CHECK(file.Read().memory == WorkMemory{5000 * 1024, 6000 * 1024, 7000 * 1024, 1});
}

}  // namespace troupe
