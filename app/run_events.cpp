#include "app/run_events.hpp"

#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "files/output_file.hpp"
#include "files/strict_json.hpp"
#include "layout/text.hpp"

namespace troupe {

namespace {

/// The keys of an object; 0 or "" for one that is missing or of another type.
struct Keys {
  const nlohmann::json& json;

  const nlohmann::json* Find(const char* key) const {
    const auto found = json.find(key);
    return found != json.end() ? &*found : nullptr;
  }
  std::string Text(const char* key) const {
    const auto* found = Find(key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : "";
  }
  double Number(const char* key) const {
    const auto* found = Find(key);
    return found != nullptr && found->is_number() ? found->get<double>() : 0.0;
  }
  std::int64_t Whole(const char* key) const { return static_cast<std::int64_t>(Number(key)); }
};

RunEvent EventOf(const nlohmann::json& json) {
  const Keys keys{json};
  RunEvent event{.time = keys.Text("time"),
                 .generation = keys.Whole("generation"),
                 .step = keys.Whole("step"),
                 .from = keys.Text("from"),
                 .cause = keys.Text("cause"),
                 .layout = keys.Text("layout")};
  const auto* slowest = keys.Find("slowest");
  if (slowest == nullptr || !slowest->is_object()) return event;
  const Keys of_slowest{*slowest};
  event.slow = {.name = keys.Text("process"),
                .ranks = {},
                .slowest = {.rank = static_cast<int>(of_slowest.Whole("rank")),
                            .own_s = of_slowest.Number("own_s"),
                            .usual_s = of_slowest.Number("usual_s"),
                            .steps = of_slowest.Whole("steps"),
                            .next_to_peers = of_slowest.Whole("next_to_peers") != 0}};
  const auto* ranks = keys.Find("slow_ranks");
  if (ranks == nullptr || !ranks->is_array()) return event;
  for (const auto& rank : *ranks) {
    if (rank.is_number_integer()) event.slow->ranks.push_back(rank.get<int>());
  }
  return event;
}

}  // namespace

std::string TimeOfNow(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), format, &utc);
  return text.data();
}

void NoteEvent(const std::string& run_directory, RunEvent event) {
  nlohmann::ordered_json line = {{"time", TimeOfNow("%Y-%m-%dT%H:%M:%SZ")}, {"step", event.step}};
  if (event.slow) {
    const SlowRank& slowest = event.slow->slowest;
    line["slow_ranks"] = event.slow->ranks;
    line["process"] = event.slow->name;
    line["slowest"] = {{"rank", slowest.rank},
                       {"own_s", slowest.own_s},
                       {"usual_s", slowest.usual_s},
                       {"steps", slowest.steps},
                       {"next_to_peers", slowest.next_to_peers ? 1 : 0}};
  } else {
    line["generation"] = event.generation;
    line["from"] = std::move(event.from);
    line["cause"] = std::move(event.cause);
    if (!event.layout.empty()) line["layout"] = std::move(event.layout);
  }
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
    if (json.is_object()) events.push_back(EventOf(json));
  }
  return events;
}

std::string ToLine(const SlowProcess& slow) {
  const auto seconds = [](double s) { return Duration(static_cast<std::int64_t>(s * 1e9)); };
  const SlowRank& slowest = slow.slowest;
  const bool alone = slow.ranks.size() == 1;
  return (alone ? "rank " : "ranks ") + RanksText(slow.ranks) + " (" + slow.name + ") " +
         (alone ? "is" : "are") + " slow: the work of rank " + std::to_string(slowest.rank) +
         " in a step takes " + seconds(slowest.own_s) +
         (slowest.next_to_peers ? ", that of its peers " : ", at first it took ") +
         seconds(slowest.usual_s) + "; " + Counted(slowest.steps, "step") + " in a row";
}

std::string ToLine(const RunEvent& event) {
  if (event.slow) {
    return event.time + " step " + std::to_string(event.step) + ": " + ToLine(*event.slow);
  }
  const std::string where =
      event.from.empty() ? "from the beginning"
                         : "after step " + std::to_string(event.step) + ", from " + event.from;
  return event.time + " generation " + std::to_string(event.generation) + " goes on " + where +
         (event.layout.empty() ? "" : ", with " + event.layout) + ": " + event.cause;
}

}  // namespace troupe
