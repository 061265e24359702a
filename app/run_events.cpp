#include "app/run_events.hpp"

#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "files/output_file.hpp"
#include "files/strict_json.hpp"

namespace troupe {

std::string TimeOfNow(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), format, &utc);
  return text.data();
}

void NoteEvent(const std::string& run_directory, RunEvent event) {
  const nlohmann::ordered_json line = {{"time", TimeOfNow("%Y-%m-%dT%H:%M:%SZ")},
                                       {"generation", event.generation},
                                       {"step", event.step},
                                       {"from", std::move(event.from)},
                                       {"cause", std::move(event.cause)}};
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  OutputFile file(run_directory + "/" + kEventsFile, FileOpening::kAppend);
  file.Write(std::as_bytes(std::span(text)));
}

std::vector<RunEvent> EventsOf(const std::string& run_directory) {
  std::vector<RunEvent> events;
  std::ifstream file(run_directory + "/" + kEventsFile);
  for (std::string line; std::getline(file, line);) {
    const auto json = ParseOwnJson(line);
    if (!json.is_object()) continue;
    const auto text = [&](const char* key) {
      const auto found = json.find(key);
      return found != json.end() && found->is_string() ? found->get<std::string>() : "";
    };
    const auto number = [&](const char* key) {
      const auto found = json.find(key);
      return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
    };
    events.push_back({.time = text("time"),
                      .generation = number("generation"),
                      .step = number("step"),
                      .from = text("from"),
                      .cause = text("cause")});
  }
  return events;
}

std::string ToLine(const RunEvent& event) {
  const std::string where =
      event.from.empty() ? "from the beginning"
                         : "after step " + std::to_string(event.step) + ", from " + event.from;
  return event.time + " generation " + std::to_string(event.generation) + " goes on " + where +
         ": " + (event.cause.empty() ? "process 0 was lost" : event.cause);
}

}  // namespace troupe
