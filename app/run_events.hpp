// What happened to the processes of a run: RUN/events.jsonl, one line for each time that the job went on
// after a loss, or that a rank was slow. Never shortened, unlike the metrics of steps that are repeated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/slow_ranks.hpp"

namespace troupe {

struct RunEvent {
  std::string time;             ///< UTC: "2026-11-28T00:41:09Z"
  std::int64_t generation = 0;  ///< of the job that began then
  std::int64_t step = 0;        ///< after which it went on, or in which the rank was named
  std::string from = {};        ///< a checkpoint, or "memory"; empty: from the beginning
  std::string cause = {};       ///< one line, for people
  std::string layout =
      {};  ///< for people, of a job that went on without some processes; else empty
  std::optional<SlowProcess> slow = {};  ///< then generation, from and cause mean nothing
};

/// Adds a line, with the time of now. Throws FileError.
void NoteEvent(const std::string& run_directory, RunEvent event);
/// In the order in which they were noted; lines that cannot be read are left out.
std::vector<RunEvent> EventsOf(const std::string& run_directory);
/// One line for people.
std::string ToLine(const RunEvent& event);
/// "ranks 4-7 (n1) are slow: ..."
std::string ToLine(const SlowProcess& slow);

/// The time of now in UTC, as strftime writes it: at most 31 characters.
std::string TimeOfNow(const char* format);

inline constexpr const char* kEventsFile = "events.jsonl";

}  // namespace troupe
