#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "tests/trace/export/lint/lint.hpp"

namespace troupe {
namespace {

using Json = nlohmann::json;
using LaneKey = std::pair<std::int64_t, std::int64_t>;

/// Decimals of microseconds pass through a double: from here on it steps by more than 1 ns.
constexpr double kExactMicros = 4'503'599'627'370.0;  // 2^52 / 1000

struct JsonFlow {
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> in;
  std::int64_t event = 0;
};

bool IsHex(const std::string& text) {
  const std::string digits = text.rfind("0x", 0) == 0 ? text.substr(2) : text;
  return !digits.empty() && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

/// Empty where it is no text.
std::string TextOf(const Json& event, const char* key) {
  const auto at = event.find(key);
  return at != event.end() && at->is_string() ? at->get<std::string>() : std::string();
}

bool IsTrue(const Json& event, const char* key) {
  const auto at = event.find(key);
  return at != event.end() && at->is_boolean() && at->get<bool>();
}

class JsonLinter {
 public:
  LintReport Lint(std::string_view content) {
    report_.format = "json";
    const std::optional<Json> events = EventsOf(content);
    if (!events) return std::move(report_);
    const auto is_event = [](const Json& one) { return one.is_object() && one.contains("ph"); };
    if (!events->empty() && std::none_of(events->begin(), events->end(), is_event)) {
      report_.no_timeline = "it is JSON, but nothing in it is an event with \"ph\"";
      return std::move(report_);
    }
    for (const Json& event : *events) {
      ++event_;
      OnEvent(event);
    }
    report_.events = event_;
    CheckLanes();
    CheckFlows();
    return std::move(report_);
  }

 private:
  void Complain(const char* rule, const std::string& text) {
    report_.Add(rule, "event " + std::to_string(event_), text);
  }

  /// Nothing: what is wrong has been said.
  std::optional<Json> EventsOf(std::string_view content) {
    Json all;
    try {
      all = Json::parse(content);
    } catch (const Json::parse_error& e) {
      return Salvage(content, e);
    }
    if (all.is_array()) return all;
    if (!all.contains("traceEvents") || !all["traceEvents"].is_array()) {
      report_.no_timeline = "expected an array of events, or an object with \"traceEvents\"";
      return std::nullopt;
    }
    return std::move(all["traceEvents"]);
  }

  /// A bare array may be cut short, an object may not.
  std::optional<Json> Salvage(std::string_view content, const Json::parse_error& e) {
    std::string words = e.what();
    const std::string where = "byte " + std::to_string(e.byte);
    if (words.find("control character") != std::string::npos) {
      report_.Add("text", where, "a control character inside a string is fatal: write \\u00..");
      return std::nullopt;
    }
    const std::size_t first = content.find_first_not_of(" \t\r\n");
    const std::size_t last = content.rfind('}');
    if (content[first] == '[' && last != std::string_view::npos) {
      Json array = Json::parse(std::string(content.substr(0, last + 1)) + "]", nullptr, false);
      if (!array.is_discarded()) return array;
    }
    const bool cut = words.find("unexpected end") != std::string::npos || e.byte > content.size();
    report_.Add(cut ? "truncated" : "malformed", where,
                cut ? "the file ends inside the object; only a bare array may be cut short"
                    : words.substr(words.find("parse error") == std::string::npos
                                       ? 0
                                       : words.find("parse error")));
    return std::nullopt;
  }

  /// A number, or one in quotes.
  static std::optional<double> NumberOf(const Json& event, const char* key) {
    const auto at = event.find(key);
    if (at == event.end()) return std::nullopt;
    if (at->is_number()) return at->get<double>();
    if (!at->is_string()) return std::nullopt;
    const std::string& text = at->get_ref<const std::string&>();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != '\0') return std::nullopt;
    return value;
  }

  std::optional<std::int64_t> TimeOf(const Json& event, const char* key) {
    const std::optional<double> micros = NumberOf(event, key);
    if (!micros || !std::isfinite(*micros) || std::abs(*micros) > 9e15) {
      Complain("time", std::string("\"") + key + "\" is no number of microseconds");
      return std::nullopt;
    }
    if (*micros > kExactMicros) {
      Complain("time-base", "\"" + std::string(key) +
                                "\" is so large that a double cannot hold nanoseconds: subtract a "
                                "base time");
    }
    return std::llround(*micros * 1000);
  }

  std::int64_t Id(const Json& event, const char* key) {
    const auto at = event.find(key);
    if (at == event.end()) {
      Complain("pid", std::string("there is no \"") + key + "\"");
      return 0;
    }
    if (at->is_string())
      return 0x100000000 + static_cast<std::int64_t>(std::hash<Json>()(*at) >> 33);
    if (!at->is_number_integer() || at->get<double>() < 1 || at->get<double>() > 4294967295.0) {
      Complain("pid", std::string("\"") + key + "\" is " + at->dump() +
                          "; expected an integer from 1 on, 0 is the idle process");
      return 0;
    }
    return at->get<std::int64_t>();
  }

  void OnEvent(const Json& event) {
    if (!event.is_object()) return Complain("malformed", "it is no object");
    const std::string phase = TextOf(event, "ph");
    static const std::set<std::string> kKnown = {"X", "B", "E", "b", "n", "e", "i", "I",
                                                 "C", "M", "T", "s", "t", "f", "R"};
    if (kKnown.count(phase) == 0) return Complain("phase", "\"ph\" is \"" + phase + "\"");
    if (phase == "M") return OnMetadata(event);
    const bool of_process = phase == "C";
    const LaneKey lane{Id(event, "pid"), of_process ? 0 : Id(event, "tid")};
    const std::optional<std::int64_t> at_ns = TimeOf(event, "ts");
    if (!at_ns) return;
    if (*at_ns < 0) Complain("time", "\"ts\" is negative: importers drop the event");
    if (phase != "E" && (!event.contains("name") || !event["name"].is_string())) {
      Complain("name", "there is no \"name\"");
    }
    if (phase == "X") OnComplete(event, lane, *at_ns);
    if (phase == "B") open_[lane].push_back(*at_ns);
    if (phase == "E") OnEnd(lane, *at_ns);
    if (phase == "C") OnCounter(event);
    if (phase == "s" || phase == "t" || phase == "f") OnFlow(event, phase, *at_ns);
    if ((phase == "b" || phase == "n" || phase == "e") && !event.contains("id") &&
        !event.contains("id2")) {
      Complain("async-id", "an asynchronous event without \"id\" or \"id2\"");
    }
  }

  void OnMetadata(const Json& event) {
    static const std::map<std::string, const char*> kNames = {{"process_name", "name"},
                                                              {"thread_name", "name"},
                                                              {"process_sort_index", "sort_index"},
                                                              {"thread_sort_index", "sort_index"}};
    const std::string name = TextOf(event, "name");
    const auto known = kNames.find(name);
    if (known == kNames.end()) return Complain("metadata", "\"" + name + "\" is not read");
    const LaneKey lane{Id(event, "pid"), event.contains("tid") ? Id(event, "tid") : 0};
    if (name.rfind("thread", 0) == 0) tracks_.insert(lane);
    if (!event.contains("args") || !event["args"].is_object() ||
        !event["args"].contains(known->second)) {
      Complain("metadata", name + " without args." + known->second);
    }
  }

  void OnComplete(const Json& event, const LaneKey& lane, std::int64_t at_ns) {
    if (!event.contains("dur")) return Complain("duration", "\"X\" without \"dur\"");
    const std::optional<std::int64_t> dur_ns = TimeOf(event, "dur");
    if (!dur_ns) return;
    if (*dur_ns < 0) Complain("duration", "\"dur\" is negative");
    ++report_.slices;
    tracks_.insert(lane);
    lanes_[lane].Add({at_ns, at_ns + *dur_ns, event_});
    if (!event.contains("bind_id")) return;
    const Json& id = event["bind_id"];
    if (id.is_string() && !IsHex(id.get<std::string>())) {
      Complain("flow-id", "\"bind_id\" " + id.dump() + " is not hexadecimal");
    }
    JsonFlow& flow = flows_["v2 " + id.dump()];
    flow.event = event_;
    if (IsTrue(event, "flow_out")) flow.out.push_back(at_ns);
    if (IsTrue(event, "flow_in")) flow.in.push_back(at_ns);
  }

  void OnEnd(const LaneKey& lane, std::int64_t at_ns) {
    auto& open = open_[lane];
    if (open.empty()) return Complain("nesting", "\"E\" where nothing has begun");
    if (at_ns < open.back()) Complain("nesting", "\"E\" comes before its \"B\"");
    ++report_.slices;
    tracks_.insert(lane);
    lanes_[lane].Add({open.back(), at_ns, event_});
    open.pop_back();
  }

  void OnCounter(const Json& event) {
    ++report_.counters;
    if (!event.contains("args") || !event["args"].is_object() || event["args"].empty()) {
      return Complain("counter", "without values in \"args\"");
    }
    for (const auto& [key, value] : event["args"].items()) {
      if (!value.is_number() && !NumberOf(event["args"], key.c_str())) {
        Complain("counter", "\"" + key + "\" is no number");
      }
    }
  }

  void OnFlow(const Json& event, const std::string& phase, std::int64_t at_ns) {
    if (!event.contains("id")) return Complain("flow-id", "a flow without \"id\"");
    const Json& id = event["id"];
    if (id.is_string() && !IsHex(id.get<std::string>())) {
      Complain("flow-id", "\"id\" " + id.dump() + " is not hexadecimal");
    }
    if (phase == "f" && TextOf(event, "bp") != "e") {
      Complain("flow-bind", "\"f\" without \"bp\":\"e\" ends at the next slice, not at this one");
    }
    JsonFlow& flow = flows_["v1 " + id.dump() + TextOf(event, "cat") + "/" + TextOf(event, "name")];
    flow.event = event_;
    if (phase == "s") flow.out.push_back(at_ns);
    if (phase == "f") flow.in.push_back(at_ns);
  }

  void CheckLanes() {
    report_.tracks = static_cast<std::int64_t>(tracks_.size());
    for (auto& [lane, nesting] : lanes_) {
      for (const auto& [outer, inner] : nesting.Overlaps()) {
        report_.Add("nesting", "event " + std::to_string(inner.event),
                    "overlaps event " + std::to_string(outer.event) + " by " +
                        std::to_string(outer.end_ns - inner.begin_ns) + " ns on pid " +
                        std::to_string(lane.first) + " tid " + std::to_string(lane.second) +
                        ", and neither is inside the other");
      }
    }
    for (const auto& [lane, begins] : open_) {
      if (begins.empty()) continue;
      report_.Add("nesting", "pid " + std::to_string(lane.first),
                  std::to_string(begins.size()) + " \"B\" never end");
    }
  }

  void CheckFlows() {
    for (const auto& [name, flow] : flows_) {
      const std::string where = "event " + std::to_string(flow.event);
      if (flow.out.empty()) {
        report_.Add("flow-start", where, "flow " + name + " ends and never starts");
      } else if (flow.in.empty()) {
        report_.Add("flow-end", where, "flow " + name + " starts and never ends");
      } else if (flow.out.size() > 1) {
        report_.Add("flow-id", where,
                    "flow " + name + " starts " + std::to_string(flow.out.size()) +
                        " times: arrows come from the first");
      } else if (*std::min_element(flow.in.begin(), flow.in.end()) <= flow.out.front()) {
        report_.Add("flow-order", where,
                    "flow " + name +
                        " does not end after it starts: the "
                        "arrow vanishes");
      } else {
        ++report_.flows;
      }
    }
  }

  LintReport report_;
  std::int64_t event_ = 0;
  std::set<LaneKey> tracks_;
  std::map<LaneKey, Nesting> lanes_;
  std::map<LaneKey, std::vector<std::int64_t>> open_;
  std::unordered_map<std::string, JsonFlow> flows_;
};

}  // namespace

LintReport LintJson(std::string_view content) { return JsonLinter().Lint(content); }

}  // namespace troupe
