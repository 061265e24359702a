// A folder of traces may hold what is not of its run.
#include "trace/run_files.hpp"

#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/data/scratch_folder.hpp"

namespace troupe {
namespace {

using Lines = std::vector<std::string>;

RecorderOptions OptionsOf(int process) {
  RecorderOptions options;
  options.process = process;
  options.processes = {"n0", "n1"};
  options.stages = {{"a", 0}, {"b", 0}};
  options.links = {{"a>b", 0, 1, false}};
  options.types = {"error", "Activation"};
  options.capacity = 64;
  options.names_bytes = 4096;
  return options;
}

/// Notes `messages` messages, 10 ns apart.
void Fill(Recorder& recorder, int process, std::int64_t begin_ns, int messages) {
  const ActorNumber actor = static_cast<ActorNumber>(process) << kActorBits | 1U;
  recorder.NameActor(actor, DeviceActor(process));
  for (int i = 0; i < messages; ++i) {
    TraceRecord record;
    record.receiver = actor;
    record.type = 1;
    record.sent_ns = record.arrived_ns = begin_ns + 10 * i;
    recorder.Note(record);
  }
}

NamedTraceFile Named(const std::string& name, const RecorderOptions& options,
                     std::int64_t begin_ns = 100, int messages = 5) {
  Recorder recorder(options);
  Fill(recorder, options.process, begin_ns, messages);
  return {name, recorder.Snapshot()};
}

std::vector<std::uint32_t> ProcessesOf(const RunFiles& chosen) {
  std::vector<std::uint32_t> processes;
  for (const TraceFile& file : chosen.files) processes.push_back(file.process);
  return processes;
}

}  // namespace

TEST_CASE("the files of all processes of a run are taken, by process", "[trace]") {
  const RunFiles chosen =
      ChooseRunFiles({Named("n1.trace", OptionsOf(1), 130), Named("n0.trace", OptionsOf(0))});
  CHECK(ProcessesOf(chosen) == std::vector<std::uint32_t>{0, 1});
  CHECK(chosen.skipped.empty());
}

TEST_CASE("of two files of one process the one with its name is taken", "[trace]") {
  const RunFiles chosen =
      ChooseRunFiles({Named("n0 (1).trace", OptionsOf(0), 100, 3),
                      Named("n0.trace", OptionsOf(0), 100, 7), Named("n1.trace", OptionsOf(1))});
  CHECK(ProcessesOf(chosen) == std::vector<std::uint32_t>{0, 1});
  CHECK(chosen.files.at(0).noted == 7);
  CHECK(chosen.skipped == Lines{"n0 (1).trace is left out: n0.trace is also of process 0, n0"});
}

TEST_CASE("a file of a job with other processes, stages, links or types is left out", "[trace]") {
  const auto skipped = [](auto change) {
    RecorderOptions other = OptionsOf(1);
    change(other);
    const RunFiles chosen =
        ChooseRunFiles({Named("n0.trace", OptionsOf(0)), Named("n1.trace", other)});
    CHECK(ProcessesOf(chosen) == std::vector<std::uint32_t>{0});
    REQUIRE(chosen.skipped.size() == 1);
    return chosen.skipped.front();
  };
  const std::string head =
      "n1.trace is left out: it belongs to another run than n0.trace: its job has ";
  CHECK(skipped([](auto& o) { o.processes.push_back("n2"); }) == head + "other processes");
  CHECK(skipped([](auto& o) { o.processes[0] = "m0"; }) == head + "other processes");
  CHECK(skipped([](auto& o) { o.stages[1].number = 1; }) == head + "other stages");
  CHECK(skipped([](auto& o) { o.links[0].name = "b>a"; }) == head + "other links");
  CHECK(skipped([](auto& o) { o.types.push_back("Gradient"); }) ==
        head + "other types of messages");
}

TEST_CASE("a file of the same configuration at another time is left out", "[trace]") {
  const auto skipped = [](std::int64_t begin_ns) {
    return ChooseRunFiles({Named("n0.trace", OptionsOf(0), 1000),  // until 1040
                           Named("n1.trace", OptionsOf(1), begin_ns)})
        .skipped;
  };
  const std::string head = "n1.trace is left out: it belongs to another run than n0.trace: it ";
  CHECK(skipped(959) == Lines{head + "ended before the other began"});
  CHECK(skipped(960).empty());
  CHECK(skipped(1040).empty());
  CHECK(skipped(1041) == Lines{head + "began after the other ended"});
}

TEST_CASE("a copy in the folder of a run changes nothing but what is said", "[trace]") {
  const ScratchFolder folder;
  const std::string traces = folder / "trace";
  std::filesystem::create_directory(traces);
  for (const int process : {0, 1}) {
    RecorderOptions options = OptionsOf(process);
    options.path = traces + "/n" + std::to_string(process) + kTraceExtension;
    Recorder recorder(options);
    Fill(recorder, process, 100, 4 + process);
  }
  const RunTrace before = ReadRunTrace(folder.path());
  CHECK(before.messages.size() == 9);
  CHECK(before.skipped.empty());
  std::filesystem::copy(traces + "/n1.trace", traces + "/n1 (1).trace");
  folder.Write("trace/notes.trace", "something else");
  const RunTrace after = ReadRunTrace(folder.path());
  CHECK(after.messages.size() == 9);
  CHECK(after.processes.size() == 2);
  CHECK(after.skipped == Lines{"n1 (1).trace is left out: n1.trace is also of process 1, n1",
                               traces + "/notes.trace: not a trace file"});
}

}  // namespace troupe
