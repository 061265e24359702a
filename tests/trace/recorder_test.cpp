// Where messages and work are noted: whole records only, the newest, and readable at any time.
#include "trace/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "trace/mapped_memory.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("troupe-recorder-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

RecorderOptions Options(const std::string& path, std::size_t capacity) {
  RecorderOptions options;
  options.path = path;
  options.process = 1;
  options.processes = {"n0", "n1"};
  options.stages = {{"vision", 0}, {"language", 0}};
  options.links = {{"vision>language", 0, 1, true}};
  options.types = {"error", "Activation"};
  options.capacity = capacity;
  return options;
}

/// A record whose fields all follow from one number.
TraceRecord RecordOf(std::int64_t value) {
  TraceRecord record;
  record.cause = static_cast<std::uint64_t>(value) * 3;
  record.sent_ns = value * 10 + 1;
  record.arrived_ns = value * 10 + 2;
  record.unit = value;
  record.bytes = value * 100;
  record.sender = static_cast<ActorNumber>(value % 1000);
  record.receiver = static_cast<ActorNumber>(value % 999);
  return record;
}

bool Consistent(const TraceRecord& record) {
  const TraceRecord expected = RecordOf(record.unit);
  return record.cause == expected.cause && record.sent_ns == expected.sent_ns &&
         record.arrived_ns == expected.arrived_ns && record.bytes == expected.bytes &&
         record.sender == expected.sender && record.receiver == expected.receiver;
}

std::string Error(const std::string& path) {
  try {
    ReadTraceFile(path);
    return "";
  } catch (const std::runtime_error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("a record is there at once, and completed in place", "[trace]") {
  const Folder folder;
  Recorder recorder(Options(folder / "n1.trace", 8));
  recorder.NameActor(1 << kActorBits | 7,
                     {.kind = ActorKind::kStage, .stage = 0, .replica = 2, .of = "vision.s0"});
  const auto number = recorder.Note(RecordOf(5));
  CHECK(number == 1);
  TraceFile file = ReadTraceFile(folder / "n1.trace");
  REQUIRE(file.records.size() == 1);
  CHECK(Consistent(file.records[0]));
  CHECK(file.records[0].id == (std::uint64_t{2} << 48 | 1));
  CHECK(file.records[0].begin_ns == 0);
  recorder.Begin(number, 70);
  recorder.End(number, 90, 3, 5);
  file = ReadTraceFile(folder / "n1.trace");
  CHECK(file.records[0].begin_ns == 70);
  CHECK(file.records[0].end_ns == 90);
  CHECK(file.records[0].first_request == 3);
  CHECK(file.records[0].last_request == 5);
  CHECK(Consistent(file.records[0]));
  CHECK(file.process == 1);
  CHECK(file.processes == 2);
  for (const TraceName& name :
       {TraceName{'A', 1048583, "3 0 0 2 -1 -1 -1 vision.s0"},
        TraceName{'L', 0, "0 1 boundary vision>language"}, TraceName{'S', 1, "0 language"}}) {
    CHECK(std::ranges::find(file.names, name) != file.names.end());
  }
}

TEST_CASE("the newest records stay, and those that went are counted", "[trace]") {
  Recorder recorder(Options("", 8));
  for (int i = 0; i < 21; ++i) recorder.Note(RecordOf(i));
  recorder.Begin(3, 1);  // overwritten: the record in its place keeps its time
  const TraceFile file = recorder.Snapshot();
  REQUIRE(file.records.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(file.records[i].unit == 13 + static_cast<std::int64_t>(i));
    CHECK(file.records[i].begin_ns == 0);
  }
  CHECK(file.noted == 21);
  CHECK(recorder.dropped() == 13);
  CHECK(file.torn == 0);
}

TEST_CASE("many threads write and one reads: every record is whole", "[trace][threads]") {
  Recorder recorder(Options("", 64));
  constexpr int kEach = 200000;
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&recorder, t] {
      for (int i = 0; i < kEach; ++i) recorder.Note(RecordOf(i * 3 + t));
    });
  }
  std::size_t read = 0;
  while (recorder.noted() < 3 * kEach) {
    for (const TraceRecord& record : recorder.Snapshot().records) {
      REQUIRE(Consistent(record));
      ++read;
    }
  }
  for (auto& writer : writers) writer.join();
  const TraceFile file = recorder.Snapshot();
  CHECK(file.records.size() == 64);
  CHECK(file.torn == 0);
}

TEST_CASE("what a killed process noted can be read", "[trace]") {
  const Folder folder;
  const std::string path = folder / "n1.trace";
  const pid_t child = fork();
  if (child == 0) {
    Recorder recorder(Options(path, 32));
    for (int i = 0; i < 20; ++i) recorder.Note(RecordOf(i));
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  const TraceFile file = ReadTraceFile(path);
  REQUIRE(file.records.size() == 20);
  for (const TraceRecord& record : file.records) CHECK(Consistent(record));
  CHECK(file.pid == child);
}

TEST_CASE("a trace that is cut short while it is written ends nothing", "[trace]") {
  const Folder folder;
  const std::string path = folder / "n1.trace";
  Recorder recorder(Options(path, 1000));
  for (int i = 0; i < 20; ++i) recorder.Note(RecordOf(i));
  fs::resize_file(path, 0);
  for (int i = 0; i < 2000; ++i) recorder.Note(RecordOf(i));
  recorder.NameActor(7, DeviceActor(3));
  CHECK(AnyPagesLost());
  CHECK(fs::file_size(path) == 0);
}

TEST_CASE("a trace that was cut short loses its end and nothing else", "[trace]") {
  const Folder folder;
  const std::string path = folder / "n1.trace";
  {
    Recorder recorder(Options(path, 16));
    for (int i = 0; i < 16; ++i) recorder.Note(RecordOf(i));
  }
  fs::resize_file(path, fs::file_size(path) - 4 * sizeof(TraceRecord) - 1);
  const TraceFile file = ReadTraceFile(path);
  REQUIRE(file.records.size() == 11);
  CHECK(file.records.back().unit == 10);
  CHECK(file.torn == 5);
}

TEST_CASE("a record with an impossible time, or one far from all others, counts as torn",
          "[trace]") {
  for (const std::int64_t at_ns :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
        std::int64_t{1} << 54, -(std::int64_t{1} << 54)}) {
    Recorder recorder(Options("", 16));
    for (int i = 0; i < 3; ++i) recorder.Note(RecordOf(i));
    recorder.Begin(2, at_ns);
    const TraceFile file = recorder.Snapshot();
    REQUIRE(file.records.size() == 2);
    CHECK(file.records.back().unit == 2);
    CHECK(file.torn == 1);
  }
}

TEST_CASE("what is no trace is refused with its reason", "[trace]") {
  const Folder folder;
  const std::string path = folder / "n1.trace";
  CHECK(Error(path) == path + ": cannot open: No such file or directory");
  std::ofstream(path) << "something else";
  CHECK(Error(path) == path + ": not a trace file");
  std::ofstream(path).close();
  CHECK(Error(path) == path + ": not a trace file");
  const auto patch = [&](std::streamoff at, std::uint64_t value) {
    { const Recorder recorder(Options(path, 16)); }
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.write(reinterpret_cast<const char*>(&value), 4);
  };
  patch(8, 7);
  CHECK(Error(path) == path + ": expected trace version 4, got 7");
  patch(8, 3);  // actors and stages by name
  CHECK(Error(path) == path + ": expected trace version 4, got 3");
  patch(12, 64);
  CHECK(Error(path) == path + ": expected record size 128, got 64");
  for (const std::streamoff at : {16, 24, 32, 40}) {
    patch(at, 0);
    patch(at, 0xFFFFFFFF);
    static_cast<void>(Error(path));  // whatever it says, it does not crash
  }
  patch(24, 0xFFFFFFF8);
  CHECK(Error(path) == path + ": corrupt header: it names bytes beyond the end of the file");
}

TEST_CASE("bytes drawn at random are no trace that crashes a reader", "[trace]") {
  const Folder folder;
  const std::string path = folder / "n1.trace";
  std::uint64_t state = 12345;
  for (int round = 0; round < 300; ++round) {
    {
      Recorder recorder(Options(path, 16));
      for (int i = 0; i < 16; ++i) recorder.Note(RecordOf(i));
    }
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto size = static_cast<std::uint64_t>(fs::file_size(path));
      // Half of them where the header and the names are.
      file.seekp(static_cast<std::streamoff>((state >> 20) % (i % 2 == 0 ? 8192 : size)));
      const char byte = static_cast<char>(state >> 56);
      if (i > 0 || round % 2 == 0) file.write(&byte, 1);
    }
    file.close();
    try {
      MergeTraces({ReadTraceFile(path)}, "run");
    } catch (const std::runtime_error&) {
    }
  }
  SUCCEED("no crash");
}

}  // namespace troupe
