#include "plan/cost/sample_list.hpp"

#include <algorithm>
#include <charconv>
#include <random>
#include <stdexcept>

#include "files/strict_json.hpp"
#include "files/text_file.hpp"
#include "layout/text.hpp"

namespace troupe {
namespace {

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts = {""};
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else if (c != '\r' && c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
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
    if (std::ranges::find(known, column) != known.end()) continue;
    throw std::runtime_error(place + "expected columns of " + Listed(known) + ", got " +
                             QuoteText(column));
  }
  if (std::ranges::find(columns, "tokens") == columns.end()) {
    throw std::runtime_error(place + "expected a column tokens");
  }
}

StepShape SampleOf(const std::vector<std::string>& columns, const std::string& line,
                   const Config& config, const std::string& place) {
  const auto cells = Split(line, ',');
  if (cells.size() != columns.size()) {
    throw std::runtime_error(place + "expected " + Counted(std::ssize(columns), "number") +
                             ", got " + std::to_string(cells.size()));
  }
  StepShape sample{.samples = 1, .labels = -1};
  for (const ModuleConfig& module : config.modules) {
    if (EncoderNamed(config, module.name) == nullptr) continue;
    sample.lengths[module.name] = module.model->most_length();
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::int64_t number = -1;
    const char* const end = cells[i].data() + cells[i].size();
    const auto read = std::from_chars(cells[i].data(), end, number);
    if (read.ptr != end || number < 0) {
      throw std::runtime_error(place + columns[i] + ": expected a number, 0 or more, got " +
                               QuoteText(cells[i]));
    }
    if (columns[i] == "tokens") {
      sample.tokens = number;
    } else if (columns[i] == "labels") {
      sample.labels = number;
    } else {
      sample.lengths[columns[i]] = number * EncoderNamed(config, columns[i])->model->most_length();
    }
  }
  if (const auto text = config.Sink().model->text()) {
    sample.tokens = std::min(sample.tokens, text->context);
  }
  if (sample.labels < 0 || sample.labels > sample.tokens) sample.labels = sample.tokens;
  return sample;
}

}  // namespace

std::vector<StepShape> ReadSampleList(const std::string& path, const Config& config) {
  const auto lines = Split(ReadWholeFile(path), '\n');
  const auto columns = Split(lines.front(), ',');
  RequireColumns(columns, config, path + ":1: ");
  std::vector<StepShape> samples;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    samples.push_back(
        SampleOf(columns, lines[i], config, path + ":" + std::to_string(i + 1) + ": "));
  }
  if (samples.empty()) throw std::runtime_error(path + ": expected a sample, got none");
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
