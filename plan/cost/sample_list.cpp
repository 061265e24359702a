#include "plan/cost/sample_list.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <random>
#include <stdexcept>
#include <system_error>

#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

/// The cells of a line, without the blanks around them.
std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells = Split(line, ',');
  for (std::string& cell : cells) {
    cell.erase(0, cell.find_first_not_of(" \t\r"));
    cell.erase(cell.find_last_not_of(" \t\r") + 1);
  }
  return cells;
}

const ModuleConfig* EncoderNamed(const Config& config, const std::string& name) {
  const ModuleConfig* const module = config.Find(name);
  return module != nullptr && module->model->field() ? module : nullptr;
}

void RequireColumns(const std::vector<std::string>& columns, const Config& config,
                    const std::string& place) {
  std::vector<std::string> known = {"tokens", "labels"};
  for (const ModuleConfig& module : config.modules) {
    if (EncoderNamed(config, module.name) != nullptr) known.push_back(module.name);
  }
  for (const std::string& column : columns) {
    if (std::ranges::find(known, column) == known.end()) {
      throw std::runtime_error(place + "expected columns of " + Listed(known) + ", got " +
                               QuoteText(column));
    }
    if (std::ranges::count(columns, column) > 1) {
      throw std::runtime_error(place + "expected each column once, got " + QuoteText(column) +
                               " twice");
    }
  }
  if (std::ranges::find(columns, "tokens") == columns.end()) {
    throw std::runtime_error(place + "expected a column tokens, got " + Listed(columns));
  }
}

std::int64_t NumberIn(const std::string& cell, const std::string& place) {
  std::int64_t number = -1;
  const char* const end = cell.data() + cell.size();
  const auto read = std::from_chars(cell.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && number >= 0) return number;
  throw std::runtime_error(place + "expected a whole number, 0 or more, got " + QuoteText(cell));
}

/// Refuses a sample whose tokens have no room for the rows of its items.
void RequireRoom(const Config& config, const std::map<std::string, std::int64_t>& items,
                 std::int64_t tokens, const std::string& place) {
  double rows = 0.0;  // products of a file's numbers may overflow
  std::vector<std::string> parts;
  for (const auto& [name, number] : items) {
    // Items of some kinds have fewer rows than those that are priced.
    const std::int64_t least = config.Find(name)->model->RowsOf(1);
    if (number == 0 || least == 0) continue;
    rows += static_cast<double>(number) * static_cast<double>(least);
    parts.push_back(Counted(number, "item") + " of " + name + " with " + Counted(least, "row") +
                    (number == 1 ? "" : " each"));
  }
  if (rows <= static_cast<double>(tokens)) return;
  const auto text = config.Sink().model->text();
  throw std::runtime_error(place + Formatted("tokens: expected at least %.0f, for ", rows) +
                           Listed(parts, " and ") + ", got " + std::to_string(tokens) +
                           (text && tokens == text->context ? ", the context" : ""));
}

StepShape SampleOf(const std::vector<std::string>& columns, const std::string& line,
                   const Config& config, const std::string& place) {
  const auto cells = CellsOf(line);
  if (cells.size() != columns.size()) {
    throw std::runtime_error(place + "expected " + Counted(std::ssize(columns), "number") + " (" +
                             Listed(columns) + "), got " + std::to_string(cells.size()));
  }
  StepShape sample{.samples = 1, .labels = -1};
  std::map<std::string, std::int64_t> items;  // by encoder
  for (const ModuleConfig& module : config.modules) {
    if (EncoderNamed(config, module.name) != nullptr) items[module.name] = 1;
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::int64_t number = NumberIn(cells[i], place + columns[i] + ": ");
    if (columns[i] == "tokens") {
      sample.tokens = number;
    } else if (columns[i] == "labels") {
      sample.labels = number;
    } else {
      items[columns[i]] = number;
    }
  }
  if (sample.labels > sample.tokens) {
    throw std::runtime_error(place + "labels: expected at most the " +
                             Counted(sample.tokens, "token") + " of the sample, got " +
                             std::to_string(sample.labels));
  }
  if (const auto text = config.Sink().model->text()) {
    sample.tokens = std::min(sample.tokens, text->context);
  }
  RequireRoom(config, items, sample.tokens, place);
  for (const auto& [name, number] : items) {
    sample.lengths[name] = number * config.Find(name)->model->most_length();
  }
  if (sample.labels < 0 || sample.labels > sample.tokens) sample.labels = sample.tokens;
  return sample;
}

}  // namespace

std::vector<StepShape> ReadSampleList(const std::string& path, const Config& config) {
  std::string text = ReadWholeFile(path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // a byte order mark
  if (text.empty()) {
    throw std::runtime_error(path + ": expected a first line that names columns, such as " +
                             "\"tokens,labels\", got an empty file");
  }
  const auto lines = Split(text, '\n');
  const auto columns = CellsOf(lines.front());
  RequireColumns(columns, config, path + ":1: ");
  std::vector<StepShape> samples;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (CellsOf(lines[i]) == std::vector<std::string>{""}) continue;
    samples.push_back(
        SampleOf(columns, lines[i], config, path + ":" + std::to_string(i + 1) + ": "));
  }
  if (samples.empty()) {
    throw std::runtime_error(path + ": expected a line for each sample after the first, got none");
  }
  return samples;
}

std::vector<PlacedSamples> StepsOfList(const std::vector<StepShape>& samples, const Config& config,
                                       int steps) {
  const auto needed = static_cast<std::size_t>(steps * config.global_batch());
  std::vector<std::size_t> order(needed);
  for (std::size_t i = 0; i < needed; ++i) order[i] = i % samples.size();
  if (needed > samples.size()) {
    std::mt19937_64 draw(1);  // the same plan each time
    for (std::size_t i = needed; i > 1; --i) std::swap(order[i - 1], order[draw() % i]);
  }
  std::vector<PlacedSamples> all(static_cast<std::size_t>(steps));
  for (std::size_t i = 0; i < needed; ++i) {
    all[i / static_cast<std::size_t>(config.global_batch())].push_back({samples[order[i]]});
  }
  return all;
}

}  // namespace troupe
