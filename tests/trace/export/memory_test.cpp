// Memory of GPUs in timelines, tables and pages: per rank, what is in use, reserved, and the peak.
#include <map>
#include <sstream>

#include <catch2/catch.hpp>

#include "tests/trace/export/lint/lint.hpp"
#include "tests/trace/export/lint/perfetto_file.hpp"
#include "tests/trace/generated/generated.hpp"
#include "trace/analyze/summary.hpp"
#include "trace/export/exporters.hpp"
#include "trace/export/sql.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMib = 1 << 20;

/// Ranks 0-4 on the GPUs 0, 0, 1, 1, 2; everything differs from rank to rank. What is in use goes
/// up and down with the passes in flight, the peak only up.
RunTrace OnGpus() {
  RunTrace trace = generated::Generate({});
  std::map<int, WorkMemory> ranks;
  for (TraceWork& work : trace.work) {
    WorkMemory& memory = ranks[work.pass.rank];
    if (memory.in_use_bytes == 0) memory.in_use_bytes = (work.pass.rank + 1) * 100 * kMib;
    memory.in_use_bytes += work.pass.kind == WorkKind::kForward    ? 7 * kMib
                           : work.pass.kind == WorkKind::kBackward ? -7 * kMib
                                                                   : 0;
    memory.peak_bytes = std::max(memory.peak_bytes, memory.in_use_bytes);
    memory.reserved_bytes = (work.pass.rank + 1) * 1000 * kMib;
    memory.gpu = work.pass.rank / 2;
    work.memory = memory;
  }
  return trace;
}

using Points = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// When the work of a rank ended, and what `field` said then; as it changes.
Points ChangesOf(const RunTrace& trace, int rank, std::int64_t WorkMemory::*field) {
  Points points;
  for (const TraceWork& work : trace.work) {
    if (work.pass.rank != rank) continue;
    const std::int64_t value = work.memory.*field;
    if (points.empty() || points.back().second != value)
      points.emplace_back(work.pass.end_ns, value);
  }
  return points;
}

}  // namespace

TEST_CASE("memory of a GPU is three counters of every rank on it, next to its first lane",
          "[trace]") {
  const RunTrace trace = OnGpus();
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  std::map<std::string, LaneCounter> counters;
  for (const LaneCounter& counter : timeline.counters) {
    if (counter.unit != "bytes") continue;
    std::string path;
    for (const std::string& part : counter.path) path += "/" + part;
    CHECK(counters.emplace(path, counter).second);
  }
  CHECK(counters.size() == 15);
  const std::map<int, std::string> places{{0, "/n0/vision/s0/rank 0"},
                                          {1, "/n0/language/s0/rank 1"},
                                          {2, "/n0/language/s0/rank 2"},
                                          {3, "/n0/language/s1/rank 3"},
                                          {4, "/n0/language/s1/rank 4"}};
  for (const auto& [rank, place] : places) {
    for (const auto& [name, field] : {std::pair{"in use", &WorkMemory::in_use_bytes},
                                      std::pair{"reserved", &WorkMemory::reserved_bytes},
                                      std::pair{"peak", &WorkMemory::peak_bytes}}) {
      INFO(place << " " << name);
      const LaneCounter& counter = counters.at(place + "/memory " + name);
      CHECK(counter.axis == "memory of rank " + std::to_string(rank));
      Points points;
      for (const CounterPoint& point : counter.points)
        points.emplace_back(point.at_ns, point.value);
      REQUIRE(points.size() >= 2);
      CHECK(points.back() == std::pair{timeline.end_ns, points[points.size() - 2].second});
      points.pop_back();
      CHECK(points == ChangesOf(trace, rank, field));
    }
  }
}

TEST_CASE("files with the memory of GPUs are drawn as they are meant", "[trace]") {
  const RunTrace trace = OnGpus();
  const TraceIndex index(trace);
  const Timeline timeline = MakeTimeline(index, {});
  std::ostringstream perfetto;
  WritePerfetto(perfetto, index, timeline);
  const LintReport report = Lint(perfetto.str());
  INFO(Format(report));
  CHECK(report.found.empty());
  // Field 8, the counter: field 3 says bytes, field 7 the axis that three share.
  const std::string axis = "memory of rank 3";
  const std::string counter = "\x42\x14\x18\x03\x3a\x10" + axis;
  std::size_t found = 0;
  for (std::size_t at = 0; (at = perfetto.str().find(counter, at)) != std::string::npos; ++at)
    ++found;
  CHECK(found == 3);

  std::map<std::string, std::int64_t> last;
  for (const auto& [path, points] : ReadPerfetto(perfetto.str()).counters) {
    if (path.find("/memory ") != std::string::npos) last[path] = points.back().second;
  }
  CHECK(last.size() == 15);
  CHECK(last.at("/n0/language/s1/rank 3/memory reserved") == 4000 * kMib);
  CHECK(last.at("/n0/vision/s0/rank 0/memory in use") == 100 * kMib);
}

TEST_CASE("a summary has the most of each rank's GPU in the steps asked for", "[trace]") {
  RunTrace trace = OnGpus();
  const auto last = std::max_element(trace.work.begin(), trace.work.end(),
                                     [](const TraceWork& a, const TraceWork& b) {
                                       return std::pair(a.pass.rank == 3, a.pass.begin_ns) <
                                              std::pair(b.pass.rank == 3, b.pass.begin_ns);
                                     });
  last->memory.in_use_bytes = last->memory.peak_bytes = 900 * kMib;  // in step 3
  const TraceIndex index(trace);
  const Steps steps(index);
  const Summary whole = Summarize(index, steps.all());
  REQUIRE(whole.gpu_memory.size() == 5);
  CHECK(whole.gpu_memory[3].rank == 3);
  CHECK(whole.gpu_memory[3].most == WorkMemory{900 * kMib, 4000 * kMib, 900 * kMib, 1});
  CHECK(whole.gpu_memory[4].most == WorkMemory{507 * kMib, 5000 * kMib, 507 * kMib, 2});
  CHECK(Summarize(index, {steps.Of(1)}).gpu_memory[3].most ==
        WorkMemory{407 * kMib, 4000 * kMib, 407 * kMib, 1});
  const std::string text = Format(whole, index, steps);
  INFO(text);
  CHECK_THAT(text, Catch::Contains("\nmemory of each rank's GPU\n"
                                   "rank  process  gpu  most in use    reserved       peak\n"));
  CHECK_THAT(text, Catch::Contains("   3  n0         1    900.0 MiB    3.91 GiB  900.0 MiB\n"));
}

TEST_CASE("tables have the memory of each piece of work and the GPU it is of", "[trace]") {
  RunTrace trace = OnGpus();
  trace.work[5].memory = {};
  trace.work[6].memory = {3 * kMib, 0, 0, WorkMemory::kOfProcess};  // as older files say
  const TraceIndex index(trace);
  const Steps steps(index);
  const TraceDatabase database(index, steps);
  CHECK(ToCsv(database.Query("select rank, gpu, max(memory_bytes), max(reserved_bytes), "
                             "max(peak_bytes) from work where rank = 4 group by 1")) ==
        "rank,gpu,max(memory_bytes),max(reserved_bytes),max(peak_bytes)\n"
        "4,2,531628032,5242880000,531628032\n");
  CHECK(ToCsv(database.Query("select count(*) from work where memory_bytes is null")) ==
        "count(*)\n1\n");
  CHECK(ToCsv(database.Query("select memory_bytes, reserved_bytes, peak_bytes from work where "
                             "gpu is null order by 1")) ==
        "memory_bytes,reserved_bytes,peak_bytes\n,,\n3145728,,\n");
}

TEST_CASE("a run without GPUs has no table and no counters of their memory", "[trace]") {
  const RunTrace trace = generated::Generate({});
  const TraceIndex index(trace);
  const Steps steps(index);
  const Summary summary = Summarize(index, steps.all());
  CHECK(summary.gpu_memory.empty());
  CHECK_THAT(Format(summary, index, steps), !Catch::Contains("GPU"));
  for (const LaneCounter& counter : MakeTimeline(index, {}).counters) CHECK(counter.axis.empty());
}

}  // namespace troupe
