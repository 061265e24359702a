#include <algorithm>

#include "configs/checks.hpp"
#include "configs/steps.hpp"
#include "configs/toml_value.hpp"
#include "files/text_file.hpp"

namespace troupe {

/// A schedule has a line per rank and some ten letters per pass; a larger file is not one.
static constexpr std::size_t kMaxScheduleBytes = 16U << 20U;

void ReadScheduleFile(ScheduleConfig& schedule, Report& report) {
  if (schedule.kind != ScheduleKind::kCsv || !report.Good({"schedule.kind", "schedule.file"}))
    return;
  if (schedule.file.empty()) {
    return report.Add("schedule.kind",
                      "expected schedule.file to name the orders with \"csv\", got \"\"");
  }
  TextFile file =
      ReadTextFile(schedule.file, kMaxScheduleBytes, "expected at most 16 MiB of orders, got more");
  if (!file.failure.empty()) {
    return report.Add("schedule.file", Quoted(schedule.file) + ": " + file.failure);
  }
  schedule.file_text = std::move(file.text);
}

static bool IsColocated(const Config& config, const EdgeConfig& edge, const Report& report) {
  const ModuleConfig* from = config.Find(edge.from);
  const ModuleConfig* to = config.Find(edge.to);
  if (from == nullptr || to == nullptr || from->inline_in) return false;
  return report.Good({KeyOf(*from, "ranks"), KeyOf(*to, "ranks")}) && HaveSameRanks(*from, *to);
}

/// The windows of a colocated encoder alternate with the backwards of the window before. A schedule
/// that runs forwards of a later window first would deadlock.
static void CheckWindow(const Config& config, const EdgeConfig& edge, Report& report) {
  const ScheduleConfig& schedule = config.schedule;
  report.Expect(schedule.window == 0 || schedule.window >= schedule.microbatches,
                {"schedule.window", "schedule.microbatches"},
                "expected \"step\", as " + Quoted(edge.from) + " is colocated with " +
                    Quoted(edge.to) + " and schedule.kind is " + Quoted(ToString(schedule.kind)) +
                    ", got " + std::to_string(schedule.window));
}

/// Returns the microbatches that the first stage of the sink takes before its first backward.
static std::int64_t WantedAhead(const Config& config) {
  const ScheduleConfig& schedule = config.schedule;
  if (schedule.kind == ScheduleKind::kGpipe) return schedule.microbatches;
  if (schedule.kind != ScheduleKind::kInterleaved) return 1;
  return std::min<std::int64_t>(schedule.microbatches, std::int64_t{2} * config.Sink().layout.pp);
}

static void CheckEdge(const Config& config, const EdgeConfig& edge, Report& report) {
  if (IsColocated(config, edge, report)) return CheckWindow(config, edge, report);
  const ModuleConfig* from = config.Find(edge.from);
  if (from == nullptr || from->inline_in) return;
  const std::int64_t wanted = WantedAhead(config);
  report.Expect(edge.credits >= wanted, {KeyOf(edge, "credits"), "schedule.microbatches"},
                "expected at least " + std::to_string(wanted) + ", the microbatches that " +
                    Quoted(edge.to) + " takes before its first backward with schedule.kind " +
                    Quoted(ToString(config.schedule.kind)) + ", got " +
                    std::to_string(edge.credits));
}

static void CheckInterleaved(const Config& config, Report& report) {
  const ModuleConfig& sink = config.Sink();
  const std::string pp_key = KeyOf(sink, "layout.pp");
  if (!report.Good({pp_key, KeyOf(sink, "layout"), "schedule.microbatches"})) return;
  if (sink.layout.pp == 1) {
    report.Add("schedule.kind", "expected " + pp_key +
                                    " of at least 2 with \"interleaved\", which gives every rank "
                                    "of that pipeline several stages, got 1");
    return;
  }
  ExpectMultiple({"schedule.microbatches", config.schedule.microbatches}, {pp_key, sink.layout.pp},
                 report);
}

void CheckSchedule(const Config& config, Report& report) {
  const ScheduleKind kind = config.schedule.kind;
  if (kind == ScheduleKind::k1F1B || kind == ScheduleKind::kZbH1) return;
  if (!report.Good({"schedule.kind"})) return;
  if (config.FindSink() == nullptr) return;  // CheckGraph reports it
  if (kind == ScheduleKind::kInterleaved) CheckInterleaved(config, report);
  for (const EdgeConfig& edge : config.edges) CheckEdge(config, edge, report);
}

}  // namespace troupe
